"""What is recorded of the answers of replicas during a run, and what is dropped because the cluster changed."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, cast
from uuid import UUID

import pytest

from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.history.recorder import Recorder
from nemesis.running import offset_samples
from nemesis.running.offset_samples import ABSENT, OffsetSamples
from nemesis.support.errors import HarnessError
from tests.nemesis.running.two_brokers import TwoBrokers

TP = ("orders", 0)
STATE = PartitionState(1, 3, isr=(1, 2), replicas=(1, 2), topic_id=UUID(int=7))
MARK, END = 5, 6
Observation = tuple[PartitionState, int] | HarnessError
"""A state of the partition and the broker epoch of its leader, or ZooKeeper's silence."""
FIRST: Observation = (STATE, 70)


class View:
    """Shows what ZooKeeper has, one look after the other; the run ends with the last one."""

    def __init__(self, *looks: Observation) -> None:
        self._looks = list(looks)
        self.deleted: list[str] = []

    @property
    def zookeeper(self) -> View:
        return self

    async def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return False

    async def snapshot(self) -> ClusterSnapshot:
        if not self._looks:
            raise asyncio.CancelledError
        look = self._looks.pop(0)
        if isinstance(look, HarnessError):
            raise look
        state, broker_epoch = look
        leader = Ephemeral(state.leader, session=1, czxid=broker_epoch)
        return ClusterSnapshot(partitions={TP: state}, brokers={state.leader: leader})


def recorded(monkeypatch: pytest.MonkeyPatch, view: View) -> list[tuple[int, str, int]]:
    """Return broker, column and offset of each event, in the order in which they are recorded."""

    def answering(offset: int) -> Any:
        async def answer(*_: object, timeout_s: float) -> dict[tuple[str, int], int]:
            del timeout_s
            return {TP: offset}

        return answer

    monkeypatch.setattr(offset_samples, "INTERVAL_S", 0.0)
    monkeypatch.setattr(offset_samples, "high_watermarks", answering(MARK))
    monkeypatch.setattr(offset_samples, "log_ends", answering(END))
    lines: list[dict[str, Any]] = []
    recorder = Recorder(
        lambda line: lines.append(json.loads(line)), process="harness", clock=lambda: 0
    )
    samples = OffsetSamples(
        cast("Any", TwoBrokers()), cast("Any", view), recorder, rng=Random("samples")
    )
    with suppress(asyncio.CancelledError):
        asyncio.run(samples.record())
    names = ("high_watermark", "log_end_offset")
    return [(line["node"], name, line[name]) for line in lines for name in names if name in line]


ENDS = [(1, "log_end_offset", END), (2, "log_end_offset", END)]


def test_ends_are_recorded_before_the_high_watermark_of_the_next_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = View(FIRST, FIRST)
    assert recorded(monkeypatch, view) == [*ENDS, (1, "high_watermark", MARK)]
    assert set(view.deleted) == {ABSENT}


def test_a_topic_that_was_created_again_has_answered_in_the_place_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = (replace(STATE, topic_id=UUID(int=8)), 70)
    assert recorded(monkeypatch, View(FIRST, again)) == []


@pytest.mark.parametrize(
    "other", [(replace(STATE, leader_epoch=4), 70), (STATE, 71)], ids=["epoch", "registration"]
)
def test_a_high_watermark_belongs_to_one_incarnation_and_epoch(
    monkeypatch: pytest.MonkeyPatch, other: Observation
) -> None:
    assert recorded(monkeypatch, View(FIRST, other)) == ENDS


def test_only_members_that_are_assigned_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = (replace(STATE, replicas=(1,)), 70)
    assert recorded(monkeypatch, View(cancelled, cancelled))[:1] == ENDS[:1]
    moving = (replace(STATE, is_moving=True), 70)
    assert recorded(monkeypatch, View(moving, moving)) == []


def test_a_look_without_zookeeper_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = HarnessError("ZooKeeper does not answer the harness")
    assert recorded(monkeypatch, View(FIRST, silent, FIRST)) == []
