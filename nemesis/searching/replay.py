"""Repeating a stored run.

A simulated run is repeated exactly: ``run.json`` holds everything that decides it, and the hash of its trace is
compared. When the hashes differ, the stored events are compared with the new ones, one by one, and the first
difference is told. Why they may differ: the code was changed since, or it depends on something that is not in the
specification, which is a fault of the simulator.

A run that was interrupted has no hash; what it recorded is compared as far as it went, ZooKeeper's log aside.

A real run cannot be repeated exactly: the machine has its own time. The same plan is run again instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from nemesis.checkers.framework.model import Verdict
from nemesis.faults import plan as plans
from nemesis.history import older_formats
from nemesis.history.errors import DamagedHistoryError, MissingHistoryError
from nemesis.history.events import Event
from nemesis.history.memory import history_of
from nemesis.history.run_directory import RunDirectory
from nemesis.history.schema import table
from nemesis.history.znodes import PROCESS as ZOOKEEPER
from nemesis.judging.known.marking import marked
from nemesis.running.mutant_choice import stored_mutant
from nemesis.running.simulated.stored import read_spec
from nemesis.running.simulated.wall_clock_limit import limit_s, limited
from nemesis.running.versions import versions
from nemesis.searching.simulate import simulate
from nemesis.simulation.trace_hash import first_difference
from nemesis.support.errors import UsageError
from nemesis.support.runtime_names import SIMULATION

EVENTS_GONE: Final = (
    "the hash differs; the stored events are gone, so where they differ cannot be told"
)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What came of repeating a simulated run."""

    is_identical: bool
    events: int
    """Of the new run."""
    trace_hash: str
    stored_hash: str | None
    """None: the stored run was interrupted."""
    compared: int
    """How many events are the same from the start on."""
    difference: str | None
    """The first event that differs."""
    verdict: Verdict
    """Of the new run; documented known behaviour does not count."""
    changed_versions: tuple[str, ...]
    """What is not what it was: ``python 3.11.2 -> 3.12.1``. Told with a difference, because it may explain it."""


def replay(run: RunDirectory) -> Replayed:
    """Repeat a simulated run and compare; blocks.

    Raises ``HistoryError`` for a directory that cannot be read, ``UsageError`` for a run that was not simulated,
    ``StillAtWork`` when it takes too much real time.
    """
    spec, stored_hash = read_spec(run)
    with limited(limit_s(spec.scenario)):
        simulated = simulate(spec, keeps_unlisted=True)
    outcome = marked(run, simulated.outcome, history=history_of(simulated.events))
    difference: str | None = None
    compared = len(simulated.events)
    if simulated.trace_hash != stored_hash:
        compared, difference = _compared(run, simulated.events, is_whole=stored_hash is not None)
    return Replayed(
        is_identical=difference is None,
        events=len(simulated.events),
        trace_hash=simulated.trace_hash,
        stored_hash=stored_hash,
        compared=compared,
        difference=difference,
        verdict=outcome.verdict,
        changed_versions=_changed(run.read_info().versions, versions(SIMULATION)),
    )


def _compared(run: RunDirectory, events: list[Event], *, is_whole: bool) -> tuple[int, str | None]:
    """Return how many events are the same from the start on, and the first difference.

    ``is_whole``: the stored run has a hash, and it is another one. Raises ``MissingHistoryError`` when there is
    neither a hash nor an event to compare with.
    """
    stored, repeated = stored_events(run), _as_read(events)
    if not stored and is_whole:
        return 0, EVENTS_GONE
    if not stored:
        raise MissingHistoryError(f"{run.raw} holds no events: there is nothing to compare with")
    if not is_whole:
        stored = [event for event in stored if event.process != ZOOKEEPER]
        repeated = repeated[: len(stored)]
    difference = first_difference(stored, repeated)
    if difference is not None:
        return difference.index, str(difference)
    if is_whole and run.read_info().events_format in older_formats.READABLE:
        return len(repeated), None  # the hash is of the lines as they were written then
    if is_whole:
        return len(
            repeated
        ), "the stored events are the same, but their hash is not that of run.json"
    return len(stored), None


def stored_events(run: RunDirectory) -> list[Event]:
    """Return the events of a simulated run in their order, which is that of time; ZooKeeper's come last.

    Raises ``DamagedHistoryError``.
    """
    is_older = run.read_info().events_format in older_formats.READABLE
    decode = _decode_older if is_older else msgspec.json.Decoder(Event).decode_lines
    timed: list[Event] = []
    committed: list[Event] = []
    for file in sorted(run.raw.glob("*.jsonl")):
        try:
            events = decode(file.read_bytes())
        except (msgspec.MsgspecError, OSError) as error:
            raise DamagedHistoryError(f"{file} cannot be read: {error}") from None
        (committed if file.stem == ZOOKEEPER else timed).extend(events)
    return [*sorted(timed, key=lambda event: event.time), *committed]


def _decode_older(lines: bytes) -> list[Event]:
    """Return the events of a file of an older format, with the columns that they have today."""
    events = msgspec.json.Decoder(Event).decode_lines(lines)
    return [Event(**row) for row in older_formats.upgraded(table(events)).to_pylist()]


def _as_read(events: list[Event]) -> list[Event]:
    """Return events as they are when they are read from a file, so that both can be compared."""
    return msgspec.json.Decoder(Event).decode_lines(msgspec.json.Encoder().encode_lines(events))


def rerun_arguments(run: RunDirectory) -> list[str]:
    """Return the arguments of ``nemesis`` that run the plan of a real run again.

    The plan, and the file of a planted bug, are those that lie in the run's directory, wherever that is now. Raises
    ``UsageError``, and ``DamagedHistoryError`` when the bug cannot be planted any more.
    """
    try:
        parts = shlex.split(run.read_info().replay)
    except ValueError:
        parts = []
    plan = run.path / plans.FILE_NAME
    if parts[:2] != ["nemesis", "run"] or "--plan" not in parts[:-1] or not plan.exists():
        raise UsageError(f"{run.info_file} does not say how the run is repeated")
    parts[parts.index("--plan") + 1] = str(plan)
    mutant = stored_mutant(run)
    if mutant is not None and mutant.file is not None:
        parts[parts.index("--mutant") + 1] = str(run.mutant_file)
    return parts[1:]


def _changed(before: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    names: Sequence[str] = sorted(before.keys() & now.keys())
    return tuple(
        f"{name} {before[name]} -> {now[name]}" for name in names if before[name] != now[name]
    )
