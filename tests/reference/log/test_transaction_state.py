"""What a log remembers of transactions: epochs of coordinators, where a transaction begins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.producer_snapshot_file import decode_snapshot, encode_snapshot
from nemesis.reference.log.producer_state_entry import ProducerStateEntry
from nemesis.reference.model import TopicPartition
from tests.reference.log.batches import NOW_MS
from tests.reference.log.transactions import ABORT, COMMIT, WRITES, Producers, Write, end, send

SMALL_SEGMENT = 300


class Clock:
    now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def opened(
    directory: Path,
    *,
    clock: Clock | None = None,
    recovery_point: int = 0,
    segment_bytes: int = 2**20,
) -> Log:
    return Log(
        TopicPartition("t", 0),
        str(directory / "t-0"),
        disk=RealDisk(),
        config=LogConfig(segment_bytes=segment_bytes),
        recovery_point=recovery_point,
        producer_id_expiration_ms=1_000,
        wall_clock=clock or Clock(),
    )


def entry_of(log: Log, producer_id: int = 7) -> ProducerStateEntry:
    return log.producer_state_manager.active_producers[producer_id]


def test_a_transaction_is_open_from_its_first_batch_to_its_marker(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, producer_id=8, is_transactional=False)
    send(log, 0)
    send(log, 1)
    assert entry_of(log).current_txn_first_offset == 1
    assert entry_of(log).coordinator_epoch == -1
    end(log, coordinator_epoch=5)
    assert not entry_of(log).has_open_transaction
    assert entry_of(log).coordinator_epoch == 5
    send(log, 2)
    assert entry_of(log).current_txn_first_offset == 4
    assert entry_of(log).coordinator_epoch == 5
    assert not entry_of(log, 8).has_open_transaction


def test_a_marker_of_an_older_coordinator_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    end(log, coordinator_epoch=5)
    send(log, 1)
    with pytest.raises(TransactionCoordinatorFencedError, match="coordinator epoch 4, and epoch 5"):
        end(log, coordinator_epoch=4)
    assert log.log_end_offset == 3
    assert entry_of(log).has_open_transaction
    end(log, coordinator_epoch=5)
    assert not entry_of(log).has_open_transaction


def test_a_marker_of_an_older_producer_epoch_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, epoch=2)
    with pytest.raises(InvalidProducerEpochError, match="sends epoch 1, and epoch 2"):
        end(log, epoch=1)
    assert log.log_end_offset == 1


def test_a_marker_that_raises_the_epoch_fences_the_producer(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    end(log, ABORT, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        send(log, 1)
    with pytest.raises(OutOfOrderSequenceError, match="expected is 0"):
        send(log, 1, epoch=1)
    assert send(log, 0, epoch=1).first_offset == 2


def test_a_producer_goes_on_behind_a_marker_of_its_epoch(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, count=2)
    end(log)
    with pytest.raises(OutOfOrderSequenceError, match="expected is 2"):
        send(log, 3)
    assert send(log, 0, count=2).first_offset == 0
    assert send(log, 2).first_offset == 3


def test_a_batch_outside_of_the_open_transaction_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    with pytest.raises(InvalidTxnStateError, match="open since offset 0"):
        send(log, 1, is_transactional=False)
    end(log)
    send(log, 1, is_transactional=False)


def test_the_epoch_of_a_coordinator_does_not_fall_when_only_markers_are_left(
    tmp_path: Path,
) -> None:
    """KAFKA-9144: a producer without a batch was written with time −1 and expired when the log was opened again."""
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    end(log, coordinator_epoch=5, epoch=3)
    log.close()
    clock.now_ms += 999
    log = opened(tmp_path, clock=clock)
    with pytest.raises(TransactionCoordinatorFencedError):
        end(log, coordinator_epoch=4, epoch=3)
    with pytest.raises(InvalidProducerEpochError):
        end(log, coordinator_epoch=5, epoch=2)


def test_the_time_of_a_marker_counts_for_the_expiration_of_its_producer(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    send(log, 0)
    end(log, timestamp_ms=NOW_MS + 500)
    clock.now_ms += 1_499
    log.producer_state_manager.remove_expired_producers()
    assert entry_of(log).last_timestamp == NOW_MS + 500
    clock.now_ms += 1
    log.producer_state_manager.remove_expired_producers()
    assert not log.producer_state_manager.active_producers


@pytest.mark.parametrize("is_opened_again", [False, True])
def test_a_producer_with_an_open_transaction_does_not_expire(
    tmp_path: Path, is_opened_again: bool
) -> None:
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    send(log, 0)
    clock.now_ms += 10_000
    if is_opened_again:
        log.close()
        log = opened(tmp_path, clock=clock)
    log.producer_state_manager.remove_expired_producers()
    assert entry_of(log).current_txn_first_offset == 0
    end(log, timestamp_ms=NOW_MS)
    log.producer_state_manager.remove_expired_producers()
    assert not log.producer_state_manager.active_producers


def test_a_snapshot_has_kafkas_fields_of_transactions() -> None:
    entry = ProducerStateEntry(7, 1, (), NOW_MS, 4, 12)
    fields = ["0000000000000007", "0001", "ffffffff", "ffffffffffffffff", "00000000"]
    fields += [f"{NOW_MS:016x}", "00000004", "000000000000000c"]
    written = encode_snapshot([entry])
    assert written[6:].hex() == "00000001" + "".join(fields)
    assert decode_snapshot(written) == [entry]


def state(log: Log) -> dict[int, tuple[int, int, int, int, int]]:
    """What does not depend on how many batches of a producer are remembered."""
    return {
        producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for producer_id, entry in log.producer_state_manager.active_producers.items()
    }


@settings(max_examples=60)
@given(WRITES, st.integers(0, 60), st.integers(0, 60), st.lists(st.integers(0, 20)), st.booleans())
def test_a_log_that_is_cut_or_recovered_remembers_what_its_batches_say(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    cut: int,
    recovery_point: int,
    lost_snapshots: list[int],
    is_cut_first: bool,
) -> None:
    """A follower that appends only what is left, batch by batch, has the same memory."""
    directory = tmp_path_factory.mktemp("logs")
    log = opened(directory, segment_bytes=SMALL_SEGMENT)
    producers = Producers()
    for write in writes:
        producers.write(log, write)
    if is_cut_first:
        log.truncate_to(cut)
        assert state(log) == state(replayed(log, directory / "cut"))
    snapshots = sorted((directory / "t-0").glob("*.snapshot"))
    for number in lost_snapshots:
        if number < len(snapshots):
            snapshots[number].unlink(missing_ok=True)
    end_offset = log.log_end_offset
    recovered = opened(
        directory, segment_bytes=SMALL_SEGMENT, recovery_point=min(recovery_point, end_offset)
    )
    assert recovered.log_end_offset == end_offset
    assert state(recovered) == state(replayed(recovered, directory / "replayed"))


def replayed(log: Log, directory: Path) -> Log:
    """A follower of the log that appends one batch at a time."""
    follower = opened(directory)
    while follower.log_end_offset < log.log_end_offset:
        follower.append_as_follower(
            log.read(follower.log_end_offset, 1, log.log_end_offset, min_one_message=True)
        )
    return follower


def test_a_replica_knows_the_transactions_of_its_leader(tmp_path: Path) -> None:
    log = opened(tmp_path / "leader")
    send(log, 0)
    end(log, COMMIT, coordinator_epoch=3)
    send(log, 1)
    follower = opened(tmp_path / "follower")
    follower.append_as_follower(log.read(0, 2**20, log.log_end_offset, min_one_message=True))
    assert state(follower) == state(log)
    assert entry_of(follower).current_txn_first_offset == 2
