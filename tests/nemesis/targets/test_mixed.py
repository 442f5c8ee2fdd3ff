"""The target mixed: which broker runs what, its options, and what cannot be done to such a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.history.sources import EventSource
from nemesis.interfaces.brokers import Containers, DiskCommands, PlantedBugs
from nemesis.interfaces.disks import LogTails
from nemesis.interfaces.links import Address
from nemesis.interfaces.traces import Traces
from nemesis.support.errors import UsageError
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerEndpoint

MIXED = TARGETS["mixed"]
RUN = Path("/run")
ENDPOINT = BrokerEndpoint(
    broker_id=1,
    bind=Address("127.4.9.1", 19092),
    advertised=Address("127.4.9.1", 9092),
    zookeeper_connect="127.4.9.51:2181",
    log_dirs=(RUN / "data" / "broker-1",),
    trace_file=RUN / "raw" / "broker-1.jsonl",
    seed=7001,
)


def launched(reference: str, broker_id: int) -> str:
    """The module that starts a broker."""
    target = MIXED.with_options({"reference": reference})
    return target.broker_program(broker_id, RUN / "config.json", None).command[2]


def test_the_first_brokers_run_the_reference_and_the_others_kafka() -> None:
    kinds = [launched("2", broker_id) for broker_id in (1, 2, 3, 11)]
    assert kinds == ["nemesis.reference"] * 2 + ["nemesis.runtimes.kafka_launcher"] * 2


def test_each_broker_is_configured_as_its_kind() -> None:
    properties = {"min.insync.replicas": 2, "controller.retry.backoff.ms": 50}
    reference = MIXED.broker_properties(ENDPOINT, properties)
    kafka = MIXED.broker_properties(replace(ENDPOINT, broker_id=2), properties)
    assert (reference["min.insync.replicas"], kafka["min.insync.replicas"]) == (2, "2")
    assert "controller.retry.backoff.ms" in reference
    assert "controller.retry.backoff.ms" not in kafka
    assert reference["listeners"] == kafka["listeners"] == "PLAINTEXT://127.4.9.1:19092"


@pytest.mark.parametrize(
    "properties", [{}, {"default.replication.factor": 3, "offsets.topic.num.partitions": 7}]
)
def test_both_kinds_agree_on_the_topics_of_the_coordinators(properties: dict[str, object]) -> None:
    """Each looks for a group by its own number of partitions, also when the other created the topic."""
    reference = MIXED.broker_properties(ENDPOINT, properties)
    kafka = MIXED.broker_properties(replace(ENDPOINT, broker_id=2), properties)
    names = [name for name in kafka if name.startswith(("offsets.topic.", "transaction.state."))]
    assert len(names) >= 5
    assert {name: str(reference[name]) for name in names} == {name: kafka[name] for name in names}


def test_a_trace_of_the_reference_is_kept_where_it_is_not_judged() -> None:
    traced = MIXED.broker_properties(ENDPOINT, {})
    assert traced["trace.file"] == "/run/logs/trace-of-broker-1.jsonl"
    untraced = MIXED.broker_properties(replace(ENDPOINT, trace_file=None), {})
    assert untraced["trace.file"] is None
    assert EventSource.TRACES not in MIXED.observes


def test_what_either_kind_cannot_have_done_to_it_is_refused() -> None:
    missing = MIXED.missing({"log.flush.interval.messages": 1})
    assert {Containers, DiskCommands, LogTails, Traces, PlantedBugs} <= missing.keys()


def test_a_property_that_the_reference_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match=r"some\.new\.property"):
        MIXED.broker_properties(ENDPOINT, {"some.new.property": 7})


def test_its_options_are_the_number_of_reference_brokers_and_those_of_kafka() -> None:
    assert MIXED.options == {"reference": "1", "kafka-version": "3.9.1"}
    chosen = {"reference": "2", "kafka-version": "3.8.0"}
    assert MIXED.with_options(chosen).options == chosen


@pytest.mark.parametrize("count", ["0", "-1", "one", ""])
def test_a_number_that_cannot_be_is_refused(count: str) -> None:
    with pytest.raises(UsageError, match="expected a number of brokers above 0"):
        MIXED.with_options({"reference": count})


def test_an_option_of_neither_is_refused() -> None:
    with pytest.raises(UsageError, match="--flavour"):
        MIXED.with_options({"flavour": "vanilla"})
