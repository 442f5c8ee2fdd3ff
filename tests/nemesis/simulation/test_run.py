"""A whole simulated run: it is judged, it is the same every time, and a planted bug shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from nemesis.checkers import judged_by_default
from nemesis.checkers.framework.model import Verdict
from nemesis.faults import plan as plans
from nemesis.history.events import Kind
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.sources import ALL_SOURCES
from nemesis.judging.judge import judge
from nemesis.running.simulated.run import simulate_into, trace_hash
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.stored import encode_spec, read_spec
from nemesis.scenarios import scenario
from nemesis.searching.simulate import SimulationResult, simulate

TIME_LIMIT_S = 20.0


def spec(seed: int, **changes: Any) -> SimulationSpec:
    chosen = scenario.override(
        scenario.load("partition-controller"), runtime="simulation", time_limit_s=TIME_LIMIT_S
    )
    plan = plans.derive(
        Random(f"{seed}/plan"),
        chosen.plan_settings(),
        start_s=chosen.phases.warm_up_s,
        end_s=chosen.faults_end_s,
    )
    return replace(SimulationSpec(scenario=chosen, seed=seed, plan=plan), **changes)


@cache
def simulated(seed: int) -> SimulationResult:
    return simulate(spec(seed))


def test_the_reference_keeps_its_promises_and_much_was_seen() -> None:
    run = simulated(1)
    assert run.outcome.verdict is Verdict.VALID, run.outcome.problems
    assert [result.property for result in run.outcome.results] == list(
        judged_by_default(ALL_SOURCES, "produce-consume")
    )
    kinds = {event.kind for event in run.events}
    assert {Kind.LEADER_ELECTED, Kind.HIGH_WATERMARK, Kind.FAULT_APPLIED, Kind.ZNODE} <= kinds
    assert len(run.issued) > 500


def test_what_was_missing_is_measured_and_lies_where_the_traces_say() -> None:
    run = simulated(1)
    (liveness,) = [result for result in run.outcome.results if result.property == "liveness"]
    done = sorted(event.time for event in run.events if event.kind == Kind.CONTROLLER_FAILOVER)
    missing = [stretch for stretch in liveness.stretches if stretch.label == "without-controller"]
    # Whoever finishes a failover takes the place of one who was missing, but for the first.
    assert [item.stop_ns for item in missing if item.is_over] == done[1:]
    assert len(done) > 1
    kills = [
        event
        for event in run.events
        if event.kind == Kind.FAULT_APPLIED and event.fault == "kill-controller"
    ]
    begins = {item.start_ns: item.fault for item in missing}
    assert all(begins.get(kill.time) == "kill-controller" for kill in kills)
    taken_over = {event.time for event in run.events if event.kind == Kind.BECOME_LEADER}
    for entry in liveness.stretches:
        if entry.label == "without-leader" and entry.is_over:
            assert entry.stop_ns in taken_over
    assert {distribution.label for distribution in liveness.distributions} == {
        "without-controller",
        "without-leader",
        "unwritable",
        "below-min-isr",
        "isr-not-full",
    }


def test_time_grows_from_event_to_event() -> None:
    times = [
        event.time for event in simulated(1).events if event.kind != Kind.ZNODE and event.time >= 0
    ]
    assert all(earlier < later for earlier, later in pairwise(times))


def test_the_same_seed_gives_the_same_run_in_one_process() -> None:
    again = simulate(spec(1))
    assert again.trace_hash == simulated(1).trace_hash
    assert [e.event for e in again.entries] == [e.event for e in simulated(1).entries]


def test_another_seed_gives_another_run() -> None:
    assert simulated(1).trace_hash != simulate(spec(2)).trace_hash


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_the_same_seed_gives_the_same_run_in_a_fresh_interpreter(hash_seed: str) -> None:
    program = (
        "import json, sys\n"
        "from tests.nemesis.simulation.test_run import simulate, spec\n"
        "print(simulate(spec(1)).trace_hash)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert result.stdout.split()[-1] == simulated(1).trace_hash


def test_the_codec_changes_nothing_but_sizes() -> None:
    real = simulate(spec(1, real_codec=True))
    assert real.outcome.verdict is simulated(1).outcome.verdict
    assert trace_hash(real.entries, with_sizes=False) == trace_hash(
        simulated(1).entries, with_sizes=False
    )


def test_operations_that_are_not_asked_for_are_not_issued() -> None:
    wanted = frozenset(simulated(1).issued[:40:2])
    run = simulate(spec(1, operations=wanted))
    assert set(run.issued) <= wanted
    assert len(run.issued) > 10
    sends = [event for event in run.events if event.kind == Kind.INVOKE and event.f == "send"]
    assert 0 < len(sends) <= len(wanted)


def test_who_looks_changes_nothing_and_a_directory_tells_everything(tmp_path: Path) -> None:
    wanted = spec(1)
    directory = RunDirectory.create(
        tmp_path,
        RunInfo(
            scenario=wanted.scenario.name,
            seed=wanted.seed,
            runtime="simulation",
            zookeepers=3,
            plan=plans.encode(wanted.plan),
            config=msgspec.to_builtins(wanted.scenario),
            simulation=encode_spec(wanted),
        ),
    )
    shown: list[str] = []
    simulate_into(directory, wanted, lambda status: shown.append(status.phase))
    assert shown
    assert read_spec(directory) == (wanted, simulated(1).trace_hash)
    assert "elected controller" in "".join(
        log.read_text() for log in directory.logs.glob("broker-*.log")
    )
    outcome = judge(directory, engine="inline")
    assert outcome.verdict is Verdict.VALID, outcome.problems
    assert outcome.events == len(simulated(1).entries)


def test_an_order_survives_json() -> None:
    """What a run directory keeps is plain data."""
    config = json.loads(json.dumps(msgspec.to_builtins(spec(1).scenario)))
    assert msgspec.convert(config, scenario.Scenario) == spec(1).scenario
