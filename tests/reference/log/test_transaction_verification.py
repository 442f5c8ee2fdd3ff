"""A transaction begins in a log only with the guard of its verification, and no guard outlives a marker (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from nemesis.reference.protocol.records import new_batch
from tests.reference.log.batches import NOW_MS
from tests.reference.log.logs import MANY
from tests.reference.log.transactions import ABORT, COMMIT, end, send

PRODUCER_ID = 7
EXPIRATION_MS = 1_000


def opened(
    directory: Path, *, wall_clock: Callable[[], int] = lambda: NOW_MS, **arguments: Any
) -> Log:
    return Log(
        TopicPartition("t", 0),
        str(directory / "t-0"),
        disk=RealDisk(),
        config=LogConfig(),
        producer_id_expiration_ms=EXPIRATION_MS,
        wall_clock=wall_clock,
        **{"transaction_verification_enabled": True, **arguments},
    )


def started(log: Log, sequence: int = 0, *, epoch: int = 0) -> VerificationGuard:
    guard = log.maybe_start_transaction_verification(PRODUCER_ID, sequence, epoch)
    assert guard is not None
    return guard


def is_open(log: Log) -> bool:
    entry = log.producer_state_manager.active_producers.get(PRODUCER_ID)
    return entry is not None and entry.has_open_transaction


def test_a_transaction_begins_with_the_guard_and_goes_on_without(tmp_path: Path) -> None:
    log = opened(tmp_path)
    with pytest.raises(InvalidTxnStateError, match="ongoing"):
        send(log, 0)
    guard = started(log)
    with pytest.raises(InvalidTxnStateError):
        send(log, 0)
    with pytest.raises(InvalidTxnStateError):
        send(log, 0, guard=VerificationGuard())
    assert log.log_end_offset == 0
    send(log, 0, guard=guard)
    assert log.maybe_start_transaction_verification(PRODUCER_ID, 1, 0) is None
    send(log, 1)
    assert log.log_end_offset == 2


def test_nothing_else_needs_a_guard(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, producer_id=8, is_transactional=False)
    end(log, ABORT)
    leader = opened(tmp_path / "leader", transaction_verification_enabled=False)
    send(leader, 0, producer_id=9)
    follower = opened(tmp_path / "follower")
    follower.append_as_follower(leader.read(0, MANY, MANY, min_one_message=True))
    assert (log.log_end_offset, follower.log_end_offset) == (2, 1)


def test_one_verification_has_one_guard(tmp_path: Path) -> None:
    """A producer that sends its batch again goes on with the verification that is under way."""
    log = opened(tmp_path)
    guard = started(log)
    assert started(log) is guard
    send(log, 0, guard=guard)
    end(log)
    assert started(log, 1) is not guard


@pytest.mark.parametrize("decision", [COMMIT, ABORT])
def test_a_marker_voids_the_guard(tmp_path: Path, decision: Any) -> None:
    log = opened(tmp_path)
    late = started(log)
    end(log, decision)
    with pytest.raises(InvalidTxnStateError):
        send(log, 0, guard=late)
    send(log, 0, guard=started(log))
    assert is_open(log)


def test_a_marker_of_the_leader_voids_the_guard_of_a_former_leader(tmp_path: Path) -> None:
    leader = opened(tmp_path / "leader", transaction_verification_enabled=False)
    end(leader)
    log = opened(tmp_path / "former")
    late = started(log)
    log.append_as_follower(leader.read(0, MANY, MANY, min_one_message=True))
    with pytest.raises(InvalidTxnStateError):
        send(log, 0, guard=late)


def test_a_refused_batch_leaves_the_guard(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, epoch=1, guard=started(log, epoch=1))
    end(log, epoch=1)
    guard = started(log, 5, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        send(log, 0, epoch=0, guard=guard)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 5, epoch=1, guard=guard)
    started(log, 1, epoch=1)
    send(log, 1, epoch=1, guard=guard)


def test_a_batch_does_not_overtake_one_that_waits(tmp_path: Path) -> None:
    """The producer is new to the log, so any sequence number would do."""
    log = opened(tmp_path)
    guard = started(log, 0)
    started(log, 3)
    with pytest.raises(OutOfOrderSequenceError, match="not been verified"):
        send(log, 3, guard=guard)
    send(log, 0, count=3, guard=guard)
    send(log, 3)


def test_a_higher_epoch_begins_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    guard = started(log, 2)
    started(log, 0, epoch=1)
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 2, guard=guard)
    started(log, 1, epoch=0)  # fenced by now
    send(log, 0, epoch=1, guard=guard)


def test_offsets_of_a_coordinator_need_a_guard_too(tmp_path: Path) -> None:
    log = opened(tmp_path)
    offsets = new_batch(
        [(b"k", b"v")],
        NOW_MS,
        attributes=TRANSACTIONAL_FLAG,
        producer=(PRODUCER_ID, 0, -1),
    )
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(offsets, 0, AppendOrigin.COORDINATOR)
    log.append_as_leader(offsets, 0, AppendOrigin.COORDINATOR, started(log, -1))
    assert is_open(log)


def test_abandoned_verifications_are_forgotten(tmp_path: Path) -> None:
    now_ms = NOW_MS
    log = opened(tmp_path, wall_clock=lambda: now_ms)
    guard = started(log)
    now_ms += EXPIRATION_MS - 1
    log.producer_state_manager.remove_expired_producers()
    assert started(log) is guard
    now_ms += 1
    log.producer_state_manager.remove_expired_producers()
    assert started(log) is not guard


class Answer(NamedTuple):
    """A question to the coordinator: asked, and after its answer known to be verified or not."""

    guard: VerificationGuard | None
    is_verified: bool | None = None


class World:
    """One log and a coordinator, which writes its marker some time after it has ended a transaction."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.has_partition = False
        """Whether the coordinator's present transaction has the partition."""
        self.owes_marker = False
        self.sequence = 0
        self.questions: list[Answer] = []

    def begin(self, _: int) -> None:
        self.has_partition = self.has_partition or not self.owes_marker

    def decide(self, _: int) -> None:
        self.owes_marker = self.owes_marker or self.has_partition
        self.has_partition = False

    def write_marker(self, _: int) -> None:
        if self.owes_marker:
            end(self.log, ABORT)
            self.owes_marker = False

    def end(self, index: int) -> None:
        self.decide(index)
        self.write_marker(index)

    def ask_and_answer(self, index: int) -> None:
        self.ask(index)
        self.answer(-1)

    def ask(self, _: int) -> None:
        guard = self.log.maybe_start_transaction_verification(PRODUCER_ID, self.sequence, 0)
        self.questions.append(Answer(guard))

    def answer(self, index: int) -> None:
        if self.questions:
            index %= len(self.questions)
            guard, is_verified = self.questions[index]
            if is_verified is None:
                self.questions[index] = Answer(guard, guard is None or self.has_partition)

    def append(self, index: int) -> None:
        verified = [question for question in self.questions if question.is_verified]
        if not verified:
            return
        try:
            send(self.log, self.sequence, guard=verified[index % len(verified)].guard)
        except InvalidTxnStateError:
            return
        self.sequence += 1


STEPS = st.sampled_from(
    ("begin", "decide", "write_marker", "end", "ask", "answer", "ask_and_answer", "append")
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(STEPS, st.integers(0, 3)), min_size=10, max_size=40))
def test_what_is_open_in_a_log_has_an_end(steps: list[tuple[str, int]]) -> None:
    """Whenever its answers come, a transaction is open in the log only if the coordinator will write its marker."""
    with TemporaryDirectory() as directory:
        world = World(opened(Path(directory)))
        for step, index in steps:
            getattr(world, step)(index)
            assert not is_open(world.log) or world.has_partition or world.owes_marker
        if is_open(world.log):
            world.end(0)
        assert not is_open(world.log)
