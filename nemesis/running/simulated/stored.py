"""A simulated run as a run directory: written like a real one's, and read back as the specification that repeats it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from nemesis.checkers import CHECKERS
from nemesis.faults import plan as plans
from nemesis.history.errors import DamagedHistoryError
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.znodes import PROCESS as ZOOKEEPER
from nemesis.running.mutant_choice import stored_mutant
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.scenarios.scenario import Scenario, check, with_present_keys
from nemesis.simulation.memory_record import Entry
from nemesis.support.choices import choose
from nemesis.support.errors import UsageError
from nemesis.support.runtime_names import SIMULATION

Decoded = TypeVar("Decoded")


class SimulationInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``run.json`` says of a simulated run beside what it says of any."""

    deviation_rate: float
    deviate_until_s: float | None = None
    max_operations: int | None = None
    operations: list[str] | None = None
    redraws: bool = True
    real_codec: bool = False
    trace_hash: str | None = None
    """None: the run did not come to its end."""


def encode_spec(spec: SimulationSpec, trace_hash: str | None = None) -> dict[str, Any]:
    """Return ``RunInfo.simulation`` of this specification."""
    until_s = spec.deviate_until_s
    info = SimulationInfo(
        deviation_rate=spec.deviation_rate,
        deviate_until_s=None if math.isinf(until_s) else until_s,
        max_operations=spec.max_operations,
        operations=None if spec.operations is None else sorted(spec.operations),
        redraws=spec.redraws,
        real_codec=spec.real_codec,
        trace_hash=trace_hash,
    )
    plain: dict[str, Any] = msgspec.to_builtins(info)
    return plain


def read_spec(run: RunDirectory) -> tuple[SimulationSpec, str | None]:
    """Return the specification that repeats a simulated run, and the trace hash that it had (None: it was interrupted).

    Raises ``HistoryError`` for a directory that cannot be read, ``UsageError`` for a run that was not simulated.
    """
    info = run.read_info()
    if info.runtime != SIMULATION:
        raise UsageError(f"{run.path} is a run on the runtime {info.runtime}, not a simulated one")
    try:
        special = _decoded(info.simulation, SimulationInfo, "simulation")
        scenario = _decoded(with_present_keys(info.config), Scenario, "config")
        check(scenario)
        if info.plan is None:
            raise UsageError("it has no plan")
        plan = plans.decode(info.plan)
        for name in info.checkers:
            choose(CHECKERS, name)
    except UsageError as error:
        raise DamagedHistoryError(f"{run.info_file} is damaged: {error}") from None
    spec = SimulationSpec(
        scenario=scenario,
        seed=info.seed,
        plan=plan,
        mutant=stored_mutant(run),
        checkers=tuple(info.checkers) or None,
        deviation_rate=special.deviation_rate,
        deviate_until_s=math.inf if special.deviate_until_s is None else special.deviate_until_s,
        max_operations=special.max_operations,
        operations=None if special.operations is None else frozenset(special.operations),
        redraws=special.redraws,
        real_codec=special.real_codec,
    )
    return spec, special.trace_hash


def _decoded(data: object, kind: type[Decoded], where: str) -> Decoded:
    """Return what a part of ``run.json`` says; raises ``UsageError`` that names the place in the whole file."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).partition(" - at `$")
        raise UsageError(f"{problem} - at `$.{where}{key.removesuffix('`')}`") from None


def write_events(run: RunDirectory, entries: Iterable[Entry]) -> None:
    """Write every event into the raw file in which it belongs. Brokers that never started have an empty one."""
    encode = msgspec.json.Encoder().encode
    files: dict[str, list[bytes]] = defaultdict(list)
    for number in range(1, run.read_info().brokers + 1):
        files[f"broker-{number}"] = []
    for entry in entries:
        files[entry.file].append(encode(entry.event))
    files.setdefault(ZOOKEEPER, [])
    for name, lines in files.items():
        run.raw_file(name).write_bytes(b"".join(line + b"\n" for line in lines))


def write_logs(run: RunDirectory, lines: Mapping[str, Iterable[str]]) -> None:
    """Write what each node printed into ``logs/``."""
    for node, printed in lines.items():
        text = "".join(f"{line}\n" for line in printed)
        (run.logs / f"{node}.log").write_text(text, encoding="utf-8")


def note_end(run: RunDirectory, trace_hash: str | None, phases: Iterable[str]) -> None:
    """Write into ``run.json`` how far the run came, and its hash."""
    info: RunInfo = run.read_info()
    run.write_info(
        msgspec.structs.replace(
            info, simulation={**info.simulation, "trace_hash": trace_hash}, phases=list(phases)
        )
    )
