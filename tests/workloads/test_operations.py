"""Every operation leaves exactly one invoke and one completion, whatever happens to it."""

from __future__ import annotations

import asyncio
from random import Random
from uuid import UUID

import msgspec
import pytest
from kio.schema.errors import ErrorCode

from nemesis.history.events import Event
from nemesis.history.recorder import Recorder
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.network import Network
from nemesis.workloads.base import WorkloadContext, WorkloadError
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.cluster_metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from nemesis.workloads.kafka.errors import (
    BrokerError,
    ConnectionFailed,
    KafkaError,
    RequestTimedOut,
)
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.produce_consume import ProduceConsume


class Lines:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.clock = 0

    def recorder(self) -> Recorder:
        return Recorder(self.lines.append, process="producer-0", clock=self.tick)

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def events(self) -> list[Event]:
        return [msgspec.json.decode(line, type=Event) for line in self.lines]


def outcome_of(error: KafkaError) -> list[tuple[str, int | None, int | None, str | None]]:
    lines = Lines()
    with OperationLog().operation(lines.recorder(), {"f": "send", "value": 7}):
        raise error
    return [(event.kind, event.op, event.value, event.error) for event in lines.events()]


def test_a_successful_operation_is_ok_with_its_result() -> None:
    lines, log = Lines(), OperationLog()
    with log.operation(lines.recorder(), {"f": "send", "value": 7}) as operation:
        operation.ok(offset=3)
    invoke, ok = lines.events()
    assert (invoke.kind, invoke.op, invoke.offset) == ("invoke", 1, None)
    assert (ok.kind, ok.op, ok.offset, ok.value) == ("ok", 1, 3, 7)
    assert log.completed == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BrokerError(ErrorCode.not_enough_replicas), "fail"),
        (BrokerError(ErrorCode.message_too_large), "fail"),
        (ConnectionFailed("CONNECTION_REFUSED", definite=True), "fail"),
        (BrokerError(ErrorCode.not_leader_or_follower), "info"),
        (BrokerError(ErrorCode.not_enough_replicas_after_append), "info"),
        (BrokerError(ErrorCode.request_timed_out), "info"),
        (ConnectionFailed("DISCONNECTED", definite=False), "info"),
        (RequestTimedOut(), "info"),
    ],
)
def test_only_certain_failures_are_fail(error: KafkaError, kind: str) -> None:
    assert outcome_of(error) == [("invoke", 1, 7, None), (kind, 1, 7, error.name)]


def test_a_cancelled_operation_is_info_and_the_cancellation_goes_on() -> None:
    lines = Lines()

    def cancelled() -> None:
        with OperationLog().operation(lines.recorder(), {"f": "send"}):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        cancelled()
    assert [event.kind for event in lines.events()] == ["invoke", "info"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"producers": -1}, "producers"),
        ({"producers": "many"}, "producers"),
        ({"record_bytes": 10**9}, "record_bytes"),
        ({"prducers": 3}, "prducers"),
        ({"compression": ["zip"]}, "Invalid enum value 'zip' - at `\\$.compression"),
        ({"compression": []}, "of length >= 1 - at `\\$.compression`"),
        ({"acks": [2]}, "Invalid enum value 2 - at `\\$.acks"),
        ({"batch_records": 0}, "Expected `int` >= 1 - at `\\$.batch_records`"),
        ({"null_key_percent": 5, "keys": 9}, "null_key_percent: expected 0 with keys 9, got 5"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], named: str) -> None:
    lines = Lines()
    context = WorkloadContext(
        [("127.0.0.1", 1)], ["127.0.0.1"], lambda _: lines.recorder(), Random(1)
    )
    with pytest.raises(WorkloadError, match=named):
        ProduceConsume(context, options)


def final_reads(
    monkeypatch: pytest.MonkeyPatch, answer: ClusterMetadata, within_s: float
) -> tuple[list[Event], int]:
    """Return what final reads record when metadata have this answer, and how often they asked for it."""
    asked: list[float] = []

    async def answered(client: KafkaClient) -> bool:
        asked.append(asyncio.get_running_loop().time())
        client.metadata = answer
        return True

    monkeypatch.setattr(KafkaClient, "refresh_metadata", answered)
    lines = Lines()
    context = WorkloadContext(
        [("127.0.0.1", 1)], ["127.0.0.1"], lambda _: lines.recorder(), Random(1)
    )
    loop = SimulationLoop()
    Network(loop, Random(1))
    try:
        loop.run_until_complete(ProduceConsume(context, {}).final_reads(within_s))
    finally:
        loop.close()
    return lines.events(), len(asked)


def led_by(leader: int) -> PartitionMetadata:
    return PartitionMetadata(leader=leader, leader_epoch=4, replicas=(1, 2), isr=(1,))


def test_a_final_reader_asks_for_a_leader_that_is_missing_ten_times_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = ClusterMetadata(topics={"t": TopicMetadata(UUID(int=1), {0: led_by(-1)})})
    (event,), asked = final_reads(monkeypatch, answer, 5.0)
    assert (event.kind, event.error) == ("final-read", "LEADER_UNKNOWN")
    assert 40 < asked < 60


def test_a_partition_without_a_leader_does_not_keep_others_from_their_final_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four readers have two partitions each; the first of each has no leader."""
    partitions = {number: led_by(-1 if number < 4 else 1) for number in range(8)}
    answer = ClusterMetadata(
        brokers={1: ("127.0.0.1", 1)}, topics={"t": TopicMetadata(UUID(int=1), partitions)}
    )
    events, _ = final_reads(monkeypatch, answer, 2.0)
    tried = {event.partition for event in events if event.kind == "invoke"}
    ends = {event.partition: event.error for event in events if event.kind == "final-read"}
    assert tried == {4, 5, 6, 7}
    assert ends == {n: "LEADER_UNKNOWN" if n < 4 else "CLIENT_TIMED_OUT" for n in range(8)}
