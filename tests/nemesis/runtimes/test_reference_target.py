"""The reference as a target: what a broker process is given and how it is started."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.links import Address
from nemesis.reference.kafka_config import ConfigError, KafkaConfig
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from nemesis.support.errors import UsageError
from nemesis.support.journal import read_journals
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerEndpoint

ENDPOINT = BrokerEndpoint(
    broker_id=2,
    bind=Address("127.4.9.2", 19092),
    advertised=Address("127.4.9.2", 9092),
    zookeeper_connect="127.4.9.51:2181",
    log_dirs=(Path("/run/data/broker-2"),),
    trace_file=Path("/run/raw/broker-2.jsonl"),
    seed=7002,
)


def test_a_broker_gets_the_scenarios_properties_and_its_place() -> None:
    properties = TARGETS["reference"].broker_properties(ENDPOINT, {"min.insync.replicas": 2})
    config = KafkaConfig.from_properties(properties)
    assert config.min_insync_replicas == 2
    assert config.listener_config.end_points == (("127.4.9.2", 19092, "PLAINTEXT"),)
    assert config.listener_config.advertised == (("127.4.9.2", 9092, "PLAINTEXT"),)
    assert config.trace_file == "/run/raw/broker-2.jsonl"


def test_a_scenario_may_give_the_controller_a_listener_of_its_own() -> None:
    asked = {
        "control.plane.listener.name": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    properties = TARGETS["reference"].broker_properties(ENDPOINT, asked)
    listeners = KafkaConfig.from_properties(properties).listener_config
    assert listeners.control_plane_end_point == ("127.4.9.2", 19093, "CONTROLLER")
    assert listeners.advertised[1] == ("127.4.9.2", 9093, "CONTROLLER")
    assert listeners.inter_broker_listener_name == "PLAINTEXT"


def test_a_broker_may_be_told_to_record_nothing() -> None:
    untraced = replace(ENDPOINT, trace_file=None)
    properties = TARGETS["reference"].broker_properties(untraced, {})
    assert KafkaConfig.from_properties(properties).trace_file is None


def test_a_value_of_the_wrong_type_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"^broker configuration: min\.insync\.replicas is 'two': .*int.*str"
    ):
        TARGETS["reference"].broker_properties(ENDPOINT, {"min.insync.replicas": "two"})


def test_a_value_out_of_range_is_named() -> None:
    with pytest.raises(UsageError, match=r": min\.insync\.replicas is 0: .*>= 1"):
        TARGETS["reference"].broker_properties(ENDPOINT, {"min.insync.replicas": 0})


def test_a_property_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"there is no property 'min\.insync'$"):
        TARGETS["reference"].broker_properties(ENDPOINT, {"min.insync": 2})


def test_a_missing_property_and_an_item_of_a_list_are_named() -> None:
    properties = TARGETS["reference"].broker_properties(ENDPOINT, {})
    with pytest.raises(ConfigError, match=r": zookeeper\.connect is missing$"):
        KafkaConfig.from_properties(
            {k: v for k, v in properties.items() if k != "zookeeper.connect"}
        )
    with pytest.raises(ConfigError, match=r": log\.dirs is \[1\]: .*str"):
        KafkaConfig.from_properties({**properties, "log.dirs": [1]})


def test_only_a_mutant_or_a_disk_that_fails_needs_the_harness_in_the_brokers_process() -> None:
    program, config = TARGETS["reference"].broker_program, Path("broker-2.json")
    direct = [sys.executable, "-m", "nemesis.reference", "broker-2.json"]
    assert program(2, config, None).command == direct
    launcher = [sys.executable, "-m", "nemesis.runtimes.reference_launcher", "broker-2.json"]
    mutant = program(2, config, "truncate-to-hw").command
    assert mutant == [*launcher, "--mutant", "truncate-to-hw"]
    ordered = program(2, config, None, disk_commands=Path("disks/broker-2")).command
    assert ordered == [*launcher, "--disk-commands", "disks/broker-2"]


@pytest.mark.e2e
def test_an_unknown_mutant_is_told_by_the_broker_that_should_carry_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))

    async def scene() -> None:
        config = ClusterConfig(
            broker_count=1, client_count=1, run_directory=tmp_path / "run", mutant="no-such-bug"
        )
        with pytest.raises(RuntimeFailure, match=r"broker-1 exited .*unknown mutant 'no-such-bug'"):
            await LocalRuntime(config).lifecycle.start()
        assert read_journals() == []

    asyncio.run(scene())
