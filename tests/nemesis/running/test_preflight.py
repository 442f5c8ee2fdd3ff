"""What is refused before anything is started or written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.faults import DEFAULT_KINDS
from nemesis.faults.availability import kinds_of
from nemesis.history.sources import EventSource
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.running.preflight import (
    RunOptions,
    RunRequest,
    create_run_directory,
    prepare,
    say_left_out,
)
from nemesis.runtimes.clock_control.library import found_library, wall_clock_library
from nemesis.scenarios import scenario
from nemesis.support.errors import UsageError


def options(tmp_path: Path, *, faults: str | None = None, plan: Path | None = None) -> RunOptions:
    return RunOptions(
        scenario="partition-controller",
        store=tmp_path / "store",
        runtime="local",
        seed=1,
        faults=faults,
        plan=plan,
    )


def left_out_of(request: RunRequest) -> set[str]:
    return {name for names in request.left_out.values() for name in names}


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("reset-connections", "its proxy keeps connections open"),
        ("packet-loss", "its links carry streams of bytes, not packets"),
        ("kill-zookeeper", "it has one ZooKeeper server"),
        ("slow-link", "its proxy holds bytes or lets them through at once"),
    ],
)
def test_a_kind_that_the_runtime_cannot_do_is_refused_even_if_the_seed_does_not_draw_it(
    tmp_path: Path, fault: str, why: str
) -> None:
    words = (
        rf"the runtime local cannot do {fault} \({why}\): it can partition, kill-controller, kill"
    )
    for faults in (fault, f"partition,kill,pause,{fault}"):
        with pytest.raises(FaultUnsupported, match=words):
            prepare(options(tmp_path, faults=faults))
    assert not (tmp_path / "store").exists()


def test_disks_of_kafka_brokers_are_refused(tmp_path: Path) -> None:
    asked = replace(options(tmp_path, faults="disk-full,partition"), target="kafka")
    words = r"cannot do disk-full \(Kafka brokers do not write through the harness's disk\)"
    with pytest.raises(FaultUnsupported, match=words):
        prepare(asked)


def test_a_bug_for_kafka_is_refused(tmp_path: Path) -> None:
    asked = replace(options(tmp_path), target="kafka", mutant="hw-unbounded")
    with pytest.raises(UsageError, match="bugs are planted in the reference only"):
        prepare(asked)


@pytest.mark.parametrize(
    ("target", "runtime"), [("kafka", "simulation"), ("mixed", "simulation"), ("mixed", "docker")]
)
def test_a_runtime_that_a_target_cannot_use_is_refused(
    tmp_path: Path, target: str, runtime: str
) -> None:
    with pytest.raises(UsageError, match=f"the target '{target}' cannot"):
        prepare(replace(options(tmp_path), target=target, runtime=runtime))


def test_a_target_is_refused_before_the_machine_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'absent.sock'}")
    with pytest.raises(UsageError, match="the target 'mixed' cannot"):
        prepare(replace(options(tmp_path), target="mixed", runtime="docker"))


def test_a_version_without_kafka_is_refused(tmp_path: Path) -> None:
    asked = replace(options(tmp_path), target_options={"kafka-version": "3.9.1"})
    with pytest.raises(UsageError, match="--kafka-version: the target reference has no such"):
        prepare(asked)


def test_the_command_that_repeats_a_run_names_the_version(tmp_path: Path) -> None:
    request = prepare(replace(options(tmp_path), target="kafka"))
    directory = create_run_directory(request, ["nemesis", "run"])
    assert "--target kafka --runtime local --kafka-version 3.9.1" in directory.read_info().replay
    assert directory.read_info().config["target_options"] == {"kafka-version": "3.9.1"}


@pytest.fixture
def _without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    wall_clock_library.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    wall_clock_library.cache_clear()


@pytest.mark.usefixtures("_without_a_compiler")
def test_a_clock_that_this_machine_cannot_move_is_refused_with_the_reason(tmp_path: Path) -> None:
    words = r"the runtime local cannot do clock-skew \(no C compiler was found, .*\): it can "
    with pytest.raises(FaultUnsupported, match=words):
        prepare(options(tmp_path, faults="clock-skew"))


@pytest.mark.skipif(found_library() is None, reason="this machine has no C compiler")
def test_a_clock_that_can_be_moved_is_no_obstacle(tmp_path: Path) -> None:
    request = prepare(options(tmp_path, faults="clock-skew"))
    assert {planned.fault.name for planned in request.plan} == {"clock-skew"}


BEFORE_ALTER_PARTITION = "inter.broker.protocol.version=2.6"


@pytest.mark.parametrize("runtime", ["local", "simulation"])
def test_brokers_that_send_no_alter_partition_cannot_have_it_held(
    tmp_path: Path, runtime: str
) -> None:
    asked = replace(options(tmp_path), runtime=runtime, broker_properties=(BEFORE_ALTER_PARTITION,))
    with pytest.raises(FaultUnsupported, match="nobody sends AlterPartition"):
        prepare(replace(asked, faults="kill,delay-alter-partition"))
    for item in (asked, replace(asked, faults="all")):
        kinds = prepare(item).scenario.faults.kinds
        assert "delay-alter-partition" not in kinds
        assert "delay-control" in kinds


@pytest.mark.parametrize("runtime", ["local", "simulation"])
def test_brokers_that_sync_every_record_have_no_ends_to_damage(
    tmp_path: Path, runtime: str
) -> None:
    """Seed 7 of ``log-compaction``, every kind of fault, drew one that could have no effect, and was ``unknown``."""
    asked = replace(options(tmp_path, faults="all"), runtime=runtime)
    assert "corrupt-tail" in prepare(asked).scenario.faults.kinds
    syncing = replace(asked, broker_properties=("log.flush.interval.messages=1",))
    compacting = replace(asked, scenario="log-compaction", seed=7)
    for item in (syncing, compacting):
        kinds = prepare(item).scenario.faults.kinds
        assert "corrupt-tail" not in kinds
        assert "power-cut" in kinds
    with pytest.raises(
        FaultUnsupported, match=r"corrupt-tail \(with log.flush.interval.messages 1"
    ):
        prepare(replace(compacting, faults="corrupt-tail"))


@pytest.mark.parametrize("runtime", ["local", "simulation"])
def test_broker_properties_of_the_command_line_are_above_those_of_the_scenario(
    tmp_path: Path, runtime: str
) -> None:
    given = ("min.insync.replicas=1", "replica.fetch.wait.max.ms=77", "broker.rack=r=1")
    request = prepare(replace(options(tmp_path), runtime=runtime, broker_properties=given))
    properties = request.scenario.broker_properties
    assert [properties[text.partition("=")[0]] for text in given] == [1, 77, "r=1"]
    assert properties["default.replication.factor"] == 3


def test_brokers_compact_topics_only_for_a_workload_with_keys(tmp_path: Path) -> None:
    file = tmp_path / "compacting.yaml"
    written = "name: compacting\nbroker: {log.cleanup.policy: [compact]}\n"
    wanted = replace(options(tmp_path), scenario=str(file), runtime="simulation")
    file.write_text(f"{written}workload: {{name: produce-consume}}\n")
    with pytest.raises(UsageError, match=r"log\.cleanup\.policy of the brokers: expected delete"):
        prepare(wanted)
    file.write_text(f"{written}workload: {{name: produce-consume, options: {{keys: 6}}}}\n")
    prepare(wanted)


def test_the_replay_command_has_the_broker_properties(tmp_path: Path) -> None:
    given = ("min.insync.replicas=1", "delete.topic.enable=false")
    request = prepare(replace(options(tmp_path), broker_properties=given))
    run = create_run_directory(request, ["nemesis"])
    command = request.replay(run)
    assert (
        "--broker-property min.insync.replicas=1 --broker-property delete.topic.enable=false"
        in (command)
    )


def test_a_planned_fault_that_the_runtime_cannot_do_is_refused(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("- {at_s: 5, fault: kill}\n- {at_s: 6, fault: slow-link, duration_s: 5}\n")
    with pytest.raises(FaultUnsupported, match="the runtime local cannot do slow-link"):
        prepare(options(tmp_path, plan=plan))


NO_DELAYS = "its proxy holds bytes or lets them through at once"


@pytest.mark.parametrize("name", scenario.names_for("reference"))
def test_every_scenario_runs_on_the_runtime_local_without_what_that_runtime_lacks(
    tmp_path: Path, name: str
) -> None:
    request = prepare(replace(options(tmp_path), scenario=name))
    listed, kinds = scenario.load(name).faults, request.scenario.faults.kinds
    lacking = set(listed.kinds) - set(kinds_of("local"))
    assert {*kinds, *request.scenario.faults.recipes}.isdisjoint(left_out_of(request))
    assert lacking == left_out_of(request) - set(listed.recipes)
    assert {planned.fault.name for planned in request.plan} <= set(kinds_of("local"))


def test_what_the_scenario_transactions_leaves_out_is_said_recorded_and_reported(
    tmp_path: Path,
) -> None:
    request = prepare(replace(options(tmp_path), scenario="transactions"))
    said: list[str] = []
    say_left_out(request, said.append)
    assert said == [
        "of the scenario's faults and recipes the run leaves out reset-connections: its proxy keeps connections open",
        f"of the scenario's faults and recipes the run leaves out slow-link: {NO_DELAYS}",
    ]
    assert create_run_directory(request, []).read_info().left_out == request.left_out
    simulated = prepare(replace(options(tmp_path), scenario="transactions", runtime="simulation"))
    assert simulated.left_out == {}


def test_a_recipe_is_left_out_with_the_kind_of_fault_that_it_needs(tmp_path: Path) -> None:
    request = prepare(replace(options(tmp_path), scenario="late-requests"))
    assert request.left_out == {NO_DELAYS: ["slow-link", "slow-then-dead", "registered-late"]}


def test_a_scenario_of_which_no_fault_would_be_left_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nfaults: {kinds: [slow-link], recipes: []}\n")
    with pytest.raises(FaultUnsupported, match="the runtime local cannot do slow-link"):
        prepare(replace(options(tmp_path), scenario=str(file)))


@pytest.mark.parametrize(
    ("runtime", "able", "unsupported"),
    [("local", "power-cut", "slow-link"), ("simulation", "power-cut", "packet-loss")],
)
def test_all_faults_are_those_that_the_runtime_can_do(
    tmp_path: Path, runtime: str, able: str, unsupported: str
) -> None:
    asked = replace(options(tmp_path, faults="all"), runtime=runtime)
    kinds = prepare(asked).scenario.faults.kinds
    assert set(DEFAULT_KINDS) <= set(kinds)
    assert able in kinds
    assert unsupported not in kinds


KRAFT = {"kafka-version": "4.1.1"}


def test_a_kraft_cluster_leaves_out_what_only_the_scenario_asks_of_zookeeper(
    tmp_path: Path,
) -> None:
    request = prepare(replace(options(tmp_path), target="kafka", target_options=KRAFT))
    kinds, recipes = request.scenario.faults.kinds, request.scenario.faults.recipes
    left_out = left_out_of(request)
    assert {"delay-control", "slow-zookeeper", "add-broker", "zombie-by-expiry"} <= left_out
    assert {"kill-controller", "expire-session", "partition"} <= set(kinds)
    assert left_out.isdisjoint([*kinds, *recipes])
    assert request.scenario.zookeepers == 0
    planned = [str(planned.fault) for planned in request.plan]
    assert planned
    assert not [fault for fault in planned if "from-zookeeper" in fault]
    info = create_run_directory(request, []).read_info()
    assert EventSource.QUORUM_LOG in info.observes
    assert EventSource.METADATA_LOG not in info.observes
    assert "java" in info.versions
    assert "zookeeper" not in info.versions


def test_stray_requests_of_transactions_need_no_zookeeper(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    line = (
        "- {{at_s: 5.0, fault: stray-requests, requests: {}, target: bystander, duration_s: 5.0}}\n"
    )
    asked = replace(options(tmp_path, plan=plan), target="kafka", target_options=KRAFT)
    plan.write_text(line.format("end-txn"))
    (planned,) = prepare(asked).plan
    assert planned.fault.name == "stray-requests"
    plan.write_text(line.format("end-txn") + line.format("control").replace("5.0", "15.0", 1))
    with pytest.raises(FaultUnsupported, match="cannot do stray-requests"):
        prepare(asked)


def test_a_fault_of_zookeeper_that_is_asked_of_a_kraft_cluster_is_refused(tmp_path: Path) -> None:
    asked = replace(options(tmp_path, faults="kill,slow-zookeeper"), target="kafka")
    words = r"cannot do slow-zookeeper \(the cluster runs with KRaft and has no ZooKeeper\)"
    with pytest.raises(FaultUnsupported, match=words):
        prepare(replace(asked, target_options=KRAFT))
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "- {at_s: 5.0, fault: partition, shape: from-zookeeper, target: controller, duration_s: 5.0}\n"
    )
    asked = replace(options(tmp_path, plan=plan), target="kafka", target_options=KRAFT)
    with pytest.raises(
        UsageError, match="cuts nothing in a cluster of 3 brokers without ZooKeeper"
    ):
        prepare(asked)


def test_controllers_of_their_own_are_nodes_of_the_run(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("- {at_s: 5.0, fault: kill, target: controller-3, duration_s: 5.0}\n")
    asked = replace(options(tmp_path, plan=plan), target="kafka")
    request = prepare(replace(asked, target_options={**KRAFT, "controllers": "3"}))
    info = create_run_directory(request, []).read_info()
    assert (info.controllers, info.brokers, info.zookeepers) == (3, 3, 0)
    assert "--controllers 3" in info.replay
    with pytest.raises(UsageError, match="'controller-3': this cluster has broker-1"):
        prepare(replace(asked, target_options=KRAFT))


@pytest.mark.parametrize(
    ("target", "chosen"),
    [("kafka", {"kafka-version": "3.9.1", "controllers": "0"}), ("reference", {})],
)
def test_a_scenario_that_strikes_voters_is_refused_with_zookeeper(
    tmp_path: Path, target: str, chosen: dict[str, str]
) -> None:
    asked = replace(options(tmp_path), scenario="kraft", target=target, target_options=chosen)
    with pytest.raises(UsageError, match="the recipes voters-lost, voter-behind for the voters"):
        prepare(asked)


def test_the_scenario_kraft_loses_a_minority_and_then_a_majority(tmp_path: Path) -> None:
    request = prepare(replace(options(tmp_path), scenario="kraft", seed=1, time_limit_s=300.0))
    assert request.scenario.target == "kafka"
    assert "metadata.log.max.record.bytes.between.snapshots" in request.scenario.broker_properties
    kills = [item for item in request.plan if item.fault.name == "kill"]
    first, later = (
        next(item for item in kills if f"voters-{size}" in str(item.fault))
        for size in ("minority", "majority")
    )
    assert first.end_s < later.at_s
