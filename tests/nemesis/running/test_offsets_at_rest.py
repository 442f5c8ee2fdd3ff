"""Replicas are asked until they agree, or have had more time than the configuration lets them take."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.history.recorder import Recorder
from nemesis.running import offsets_at_rest
from nemesis.running.offsets_at_rest import CHANGED, OffsetsAtRest, PartitionLook
from nemesis.support.errors import HarnessError
from nemesis.workloads.kafka.replica_offsets import Answers, ReplicaOffsets
from tests.nemesis.running.two_brokers import TwoBrokers

TP = ("orders", 0)
STATE = PartitionState(1, 3, isr=(1, 2), replicas=(1, 2), topic_id=UUID(int=7))
SETTINGS = {
    "replica.socket.timeout.ms": 20,
    "replica.fetch.backoff.ms": 10,
    "replica.fetch.wait.max.ms": 10,
}
AGREED = ReplicaOffsets(0, 5, 5)
BEHIND = ReplicaOffsets(0, 4, 5)


class View:
    """Shows these states of the partition one after the other, the last for good."""

    def __init__(self, *states: PartitionState) -> None:
        self._states = list(states)

    async def snapshot(self) -> ClusterSnapshot:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return ClusterSnapshot(partitions={TP: state})


class BlindView:
    async def snapshot(self) -> ClusterSnapshot:
        raise HarnessError("ZooKeeper does not answer the harness")


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets_at_rest, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(offsets_at_rest, "REPORT_INTERVAL_S", 0.02)


def recorded(
    monkeypatch: pytest.MonkeyPatch, view: object, *answers: ReplicaOffsets | str
) -> list[dict[str, Any]]:
    """Return what is recorded if all brokers answer this, one answer per broker and look, the last for good."""
    left = list(answers)

    async def ask_replicas(*_: object, timeout_s: float) -> Answers:
        del timeout_s
        return {TP: left.pop(0) if len(left) > 1 else left[0]}

    monkeypatch.setattr(offsets_at_rest, "ask_replicas", ask_replicas)
    lines: list[dict[str, Any]] = []
    recorder = Recorder(
        lambda line: lines.append(json.loads(line)), process="harness", clock=lambda: 0
    )

    async def look() -> None:
        await OffsetsAtRest(
            cast("Any", TwoBrokers()),
            cast("Any", view),
            recorder,
            settings=SETTINGS,
            rng=Random("rest"),
        ).record()

    asyncio.run(look())
    return lines


def test_replicas_that_agree_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, listed = recorded(monkeypatch, View(STATE), AGREED, AGREED, BEHIND)
    assert (first["node"], second["node"], listed["count"]) == (1, 2, 2)
    assert first["error"] == second["error"] == listed["error"] == "NONE"
    assert (
        second["log_start_offset"],
        second["high_watermark"],
        second["log_end_offset"],
    ) == AGREED
    assert (second["leader"], second["leader_epoch"], second["isr"]) == (1, 3, [1, 2])


def test_replicas_that_do_not_agree_yet_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = recorded(monkeypatch, View(STATE), AGREED, BEHIND, AGREED, "NOT_LEADER", AGREED)
    assert [line["error"] for line in lines] == ["NONE"] * 3
    assert [line["high_watermark"] for line in lines[:2]] == [5, 5]


def test_what_does_not_agree_in_time_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = recorded(monkeypatch, View(STATE), BEHIND)
    assert first["high_watermark"] == second["high_watermark"] == 4
    assert first["duration_ms"] > 50, "the bound is 20 + 10 + 2 * 10 ms"


def test_a_state_that_changes_meanwhile_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    other = PartitionState(2, 4, isr=(1, 2), replicas=(1, 2))
    never = View(*[STATE, other] * 10_000)
    first, second, _ = recorded(monkeypatch, never, AGREED)
    assert first["error"] == second["error"] == CHANGED
    once = View(STATE, other)
    assert [line["error"] for line in recorded(monkeypatch, once, AGREED)] == ["NONE"] * 3


def test_zookeeper_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    (blind,) = recorded(monkeypatch, BlindView(), AGREED)
    assert blind["error"] == "ZooKeeper does not answer the harness"


def test_at_rest_is_who_needs_to_hear_nothing() -> None:
    def is_at_rest(leader: ReplicaOffsets | str, other: ReplicaOffsets | str) -> bool:
        return PartitionLook(STATE, {1: leader, 2: other}).is_at_rest

    assert is_at_rest(AGREED, AGREED)
    assert is_at_rest(AGREED, ReplicaOffsets(3, 5, 5))
    assert not is_at_rest(ReplicaOffsets(3, 5, 5), AGREED)
    assert not is_at_rest(AGREED, BEHIND)
    assert not is_at_rest(AGREED, ReplicaOffsets(0, 4, 4))
    assert not is_at_rest(AGREED, "CLIENT_TIMED_OUT")
    assert not is_at_rest("CLIENT_TIMED_OUT", AGREED)
