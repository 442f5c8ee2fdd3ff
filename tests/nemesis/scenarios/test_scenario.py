"""Scenario files: ours load, wrong ones are one sentence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.liveness.recovery_bound import bound_ms
from nemesis.faults import DEFAULT_KINDS, FAULTS
from nemesis.history.events import Event, Kind
from nemesis.interfaces.runtime import first_missing
from nemesis.running.timeout_settings import timeout_settings
from nemesis.runtimes.local.runtime import UNSUPPORTED as LOCAL_UNSUPPORTED
from nemesis.runtimes.simulation.runtime import UNSUPPORTED as SIMULATION_UNSUPPORTED
from nemesis.scenarios import scenario
from nemesis.support.errors import UsageError


@pytest.mark.parametrize("name", scenario.names())
def test_every_scenario_of_ours_is_sound(name: str) -> None:
    loaded = scenario.load(name)
    assert loaded.name == name
    assert loaded.summary


def test_the_main_job_has_every_fault_and_outlasts_detection() -> None:
    main = scenario.load("partition-controller")
    assert set(main.faults.kinds) == set(DEFAULT_KINDS)
    shortest_ms = main.faults.duration_s[0] * 1000
    session_ms = main.broker["zookeeper.session.timeout.ms"]
    lag_ms = main.broker["replica.lag.time.max.ms"]
    assert isinstance(session_ms, int)
    assert isinstance(lag_ms, int)
    # ZooKeeper expires in whole ticks; a follower leaves after one and a half times its lag.
    assert session_ms + 2 * main.zookeeper.tick_time_ms < shortest_ms
    assert 1.5 * lag_ms < shortest_ms


def test_the_scenarios_have_together_every_fault_of_local_and_simulation() -> None:
    kinds = {kind for name in scenario.names() for kind in scenario.load(name).faults.kinds}
    runtimes = (LOCAL_UNSUPPORTED, SIMULATION_UNSUPPORTED)
    assert kinds == {
        name
        for name, fault in FAULTS.items()
        if any(first_missing(fault.needs, missing) is None for missing in runtimes)
    }


def test_machine_faults_run_on_the_cluster_of_the_main_job() -> None:
    main = scenario.override(scenario.load("partition-controller"), runtime="simulation")
    machines = scenario.load("machine-faults")
    assert machines.broker_properties == main.broker_properties
    assert machines.phases == main.phases
    assert (machines.brokers, machines.zookeepers) == (main.brokers, main.zookeepers)


def test_recovery_runs_on_the_cluster_of_the_main_job_with_pauses_longer_than_the_bound() -> None:
    main, recovery = scenario.load("partition-controller"), scenario.load("recovery")
    assert recovery.broker_properties == main.broker_properties
    assert recovery.zookeeper == main.zookeeper
    assert set(main.faults.kinds) - set(recovery.faults.kinds) == {"add-broker", "remove-broker"}
    stated = [
        Event(
            time=0,
            process="harness",
            kind=Kind.TIMEOUT_SETTING,
            seq=0,
            setting=name,
            duration_ms=ms,
        )
        for name, ms in timeout_settings(recovery).items()
    ]
    bound = bound_ms(enumerate(stated))
    assert bound is not None
    assert 1000 * recovery.faults.gap_s[0] > bound


def test_isrs_by_zookeeper_are_the_main_job_but_for_their_way() -> None:
    main, other = scenario.load("partition-controller"), scenario.load("isr-by-zookeeper")
    assert set(main.faults.kinds) - set(other.faults.kinds) == {"delay-alter-partition"}
    same = msgspec.structs.replace(
        other,
        name=main.name,
        summary=main.summary,
        broker={k: v for k, v in other.broker.items() if k != "inter.broker.protocol.version"},
        faults=main.faults,
    )
    assert same == main


def test_a_users_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nbrokers: 5\ntime_limit_s: 30\n")
    assert scenario.load(str(file)).brokers == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", "is not valid YAML"),
        ("- a", "Expected `object`"),
        ("{}", "name"),
        ("name: x\nbrokers: 0", "brokers"),
        ("name: x\nbrokers: 400", "brokers"),
        ("name: x\ntime_limit_s: -4", "time_limit_s"),
        ("name: x\ntime_limit_s: 20\nphases: {warm_up_s: 30}", "too short"),
        ("name: x\ntarget: oracle", "unknown target 'oracle': allowed are kafka, mixed, reference"),
        ("name: x\nruntime: moon", "unknown runtime 'moon': allowed are docker, local, simulation"),
        (
            "name: x\nfaults: {kinds: [flood]}",
            "unknown fault 'flood': allowed are add-broker, bandwidth",
        ),
        ("name: x\nfaults: {duration_s: [7, 5]}", "the first must not exceed the second"),
        ("name: x\nworkload: {name: chess}", "unknown workload 'chess': allowed are"),
        ("name: x\ncolour: red", "colour"),
        ("name: x\nsimulation: {latency: lunar}", "lunar"),
        ("name: ../evil", "name"),
    ],
)
def test_a_wrong_scenario_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        scenario.load(str(file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_scenario_names_the_allowed_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown scenario 'nope': allowed are .*partition-contr"):
        scenario.load("nope")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": -1}, "--brokers is -1: allowed are 1 to"),
        ({"time_limit_s": 0.0}, "--time-limit is 0: allowed are"),
        ({"time_limit_s": float("nan")}, "--time-limit is nan"),
        ({"time_limit_s": 1e9}, "--time-limit is 1e"),
        ({"target": "x"}, "unknown target 'x'"),
        ({"kinds": ("x",)}, "unknown fault 'x'"),
    ],
)
def test_absurd_values_of_the_command_line_are_refused(
    change: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        scenario.override(scenario.load("partition-controller"), **change)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_the_old_key_of_recipes_is_still_read() -> None:
    old = scenario.parse("name: x\nfaults: {episodes: [zombie-by-pause]}", where="the scenario x")
    new = scenario.parse("name: x\nfaults: {recipes: [zombie-by-pause]}", where="the scenario x")
    assert old == new
    assert new.faults.recipes == ("zombie-by-pause",)


KAFKA = 'name: x\ntarget: kafka\ntarget_options: {kafka-version: "3.8.0"}'


def test_a_scenario_chooses_a_version_of_its_target() -> None:
    chosen = scenario.override(scenario.parse(KAFKA, where="the scenario x"))
    assert chosen.chosen_target.options == {"kafka-version": "3.8.0"}


def test_the_command_line_chooses_another_version_or_another_target() -> None:
    chosen = scenario.parse(KAFKA, where="the scenario x")
    newer = scenario.override(chosen, target_options={"kafka-version": "3.9.1"})
    assert newer.target_options == {"kafka-version": "3.9.1"}
    assert scenario.override(chosen, target="reference").target_options == {}


def test_what_is_left_out_is_stored_as_it_is_by_default() -> None:
    main = scenario.load("partition-controller")
    chosen = scenario.override(main, target="kafka")
    assert chosen.target_options == {"kafka-version": "3.9.1"}


def test_an_option_of_another_target_is_refused_in_a_file() -> None:
    with pytest.raises(UsageError, match="the target reference has no such option"):
        scenario.parse("name: x\ntarget_options: {kafka-version: '3.9.1'}", where="the scenario x")
