"""Metadata logs of KRaft voters: what a majority has, and the events that it gives.

The log is that of a run of Kafka 4.1.1 with three nodes: controllers and brokers died, were cut off and fenced, a
broker's replicas were moved away and back. What it must say at the end is what the brokers answered then.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import msgspec
import pytest
from crc32c import crc32c

from nemesis.checkers.assignments import decoded
from nemesis.history.events import Event
from nemesis.history.quorum_events import PROCESS, QuorumEvents
from nemesis.history.quorum_log import QuorumLog, SnapshotId, committed, read_quorum_log
from nemesis.history.quorum_records import SCHEMAS, decode
from tests.history.quorum_logs import REAL

SEGMENT: Final = f"{0:020}.log"
AT_THE_END: Final = {
    ("later-0", 0): (1, [2, 3, 1]),
    ("later-1", 0): (1, [2, 1, 3]),
    ("later-2", 0): (1, [3, 1, 2]),
    ("orders-0", 0): (1, [3, 1, 2]),
    ("orders-0", 1): (1, [1, 2, 3]),
    ("orders-0", 2): (1, [2, 3, 1]),
    ("orders-1", 0): (1, [1, 2, 3]),
    ("orders-1", 1): (1, [2, 3, 1]),
    ("orders-1", 2): (1, [3, 1, 2]),
}
"""Leader and replicas of each partition, as every broker answered a Metadata request; all replicas were in sync."""


def voter(directory: Path, data: bytes) -> QuorumLog:
    """A voter whose log has these bytes."""
    directory.mkdir(exist_ok=True)
    (directory / SEGMENT).write_bytes(data)
    return read_quorum_log(directory)


@pytest.fixture(scope="module")
def data() -> bytes:
    return gzip.decompress(REAL.read_bytes())


@pytest.fixture
def log(tmp_path: Path, data: bytes) -> QuorumLog:
    return voter(tmp_path, data)


def events_of(log: QuorumLog) -> list[Event]:
    return list(QuorumEvents().events(log.batches))


def test_the_last_states_are_what_the_brokers_answered_at_the_end(log: QuorumLog) -> None:
    leaders: dict[tuple[str, int], int] = {}
    replicas: dict[tuple[str, int], list[int]] = {}
    for event in events_of(log):
        assert event.process == PROCESS
        path = event.path or ""
        if path.endswith("/state"):
            assert event.topic is not None
            assert event.partition is not None
            assert event.leader is not None
            leaders[event.topic, event.partition] = event.leader
            state = msgspec.json.decode(event.data or "")
            assert state["isr"] == event.isr
        elif path.startswith("/brokers/topics/"):
            for partition, assignment in decoded(event.data).items():
                replicas[event.topic or "", partition] = list(assignment.replicas)
    assert {tp: (leaders[tp], replicas[tp]) for tp in leaders} == AT_THE_END


def test_events_are_in_the_order_of_offsets_and_epochs_grow(log: QuorumLog) -> None:
    events = events_of(log)
    positions = [(event.zxid or 0, event.seq) for event in events]
    assert positions == sorted(set(positions))
    epochs = [event.controller_epoch for event in events if event.path == "/controller_epoch"]
    assert epochs == [1, 2, 3, 5]
    controllers = [event.controller_id for event in events if event.path == "/controller"]
    assert [broker for broker in controllers if broker is not None] == [2, 1, 2, 2]


def test_a_broker_is_registered_while_it_is_not_fenced(log: QuorumLog) -> None:
    registrations = [
        (event.zk_op, event.broker_epoch)
        for event in events_of(log)
        if event.path == "/brokers/ids/1"
    ]
    assert registrations == [
        ("create", 8),
        ("delete", None),
        ("create", 86),
        ("delete", None),
        ("create", 86),
    ]


def test_eligible_leaders_and_completed_reassignments_are_in_the_states(log: QuorumLog) -> None:
    states = [
        (event.zxid, event.topic, msgspec.json.decode(event.data or ""))
        for event in events_of(log)
        if (event.path or "").endswith("/state")
    ]
    by_offset = {zxid: (topic, state) for zxid, topic, state in states}
    assert by_offset[171][1]["elr"] == [3]
    assert by_offset[171][1]["isr"] == [2]
    topic, completed = by_offset[103]
    assert (topic, completed["leader"], completed["ends_reassignment"]) == ("orders-1", 1, True)
    assert not by_offset[94][1]["ends_reassignment"]


def test_what_one_voter_has_alone_is_not_committed(
    tmp_path: Path, data: bytes, log: QuorumLog
) -> None:
    alone = log.batches[-1]
    shorter = data[: -len(alone.data) - 61]
    others = [voter(tmp_path / name, shorter) for name in ("b", "c")]
    agreed = committed([log, *others], 3)
    assert agreed.batches == log.batches[:-1]
    assert agreed.problems == ()
    assert committed([log, log, others[0]], 3).batches == log.batches


def test_a_batch_of_another_epoch_at_the_same_offset_is_another_batch(
    tmp_path: Path, data: bytes, log: QuorumLog
) -> None:
    """Offset 35 begins the second epoch: one voter claims that it belongs to the first."""
    position = data.index((35).to_bytes(8), 0)
    forged = data[: position + 12] + (1).to_bytes(4) + data[position + 16 :]
    other = voter(tmp_path / "forged", forged)
    assert [batch.epoch for batch in other.batches if batch.base_offset == 35] == [1]
    assert committed([log, other, log], 3).batches == log.batches
    agreed = committed([log, other], 3)
    assert 35 not in {batch.base_offset for batch in agreed.batches}
    assert agreed.problems == ("the metadata logs of a majority lack the offsets 35 to 35",)


def test_voters_that_differ_within_an_epoch_are_a_problem(
    tmp_path: Path, data: bytes, log: QuorumLog
) -> None:
    """One voter has the first batch of another cluster at its place: another CRC, the same offset and epoch."""
    batch = log.batches[0]
    end = len(batch.data) + 61
    changed = bytearray(data[:end])
    changed[-1] ^= 1
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4)
    other = voter(tmp_path / "other", bytes(changed) + data[end:])
    agreed = committed([log, log, other], 3)
    assert agreed.batches == log.batches
    [problem] = agreed.problems
    assert problem == "voters have different batches at offset 0 of epoch 1 of the metadata log"


@pytest.mark.parametrize("size", [1, 30, 61, 100])
def test_a_torn_end_is_left_out_and_damage_before_it_is_a_problem(
    tmp_path: Path, data: bytes, log: QuorumLog, size: int
) -> None:
    torn = voter(tmp_path / "torn", data + data[:size])
    assert torn == log
    middle = data.index((35).to_bytes(8)) + 70
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    damaged = voter(tmp_path / "damaged", changed)
    assert len(damaged.batches) < len(log.batches)
    [problem] = damaged.problems
    assert "is damaged at byte" in problem


@pytest.mark.parametrize("empty", [0, 2], ids=["missing", "empty"])
def test_without_a_majority_nothing_is_committed(log: QuorumLog, empty: int) -> None:
    agreed = committed([log, *[QuorumLog(())] * empty], 3)
    assert agreed.batches == ()
    assert agreed.problems == (
        "the metadata logs of 1 voters have records: expected a majority of 3",
    )


def behind_snapshot(log: QuorumLog, replaced: int, *, epoch_ahead: int = 0) -> QuorumLog:
    """The voter, with a snapshot in place of its first batches. A positive ``epoch_ahead`` makes it another's."""
    last = log.batches[replaced - 1]
    snapshot = SnapshotId(last.last_offset + 1, last.epoch + epoch_ahead)
    return QuorumLog(log.batches[replaced:], (), (snapshot,))


def test_where_snapshots_replaced_all_beginnings_the_beginning_is_a_problem(log: QuorumLog) -> None:
    cut = behind_snapshot(log, 5)
    [problem] = committed([cut, cut, cut], 3).problems
    assert problem == f"the metadata logs of a majority lack the offsets 0 to {cut.start - 1}"


@pytest.mark.parametrize("replaced", [5, "all"])
def test_one_log_has_the_beginning_for_voters_with_snapshots(
    log: QuorumLog, replaced: int | str
) -> None:
    count = replaced if isinstance(replaced, int) else len(log.batches)
    cut = behind_snapshot(log, count)
    agreed = committed([cut, log, cut], 3)
    assert agreed.problems == ()
    assert agreed.batches == (log.batches if count == 5 else log.batches[:count])
    assert committed([QuorumLog(()), log, cut], 3).batches == log.batches


def test_a_snapshot_of_another_epoch_says_nothing_of_a_log(log: QuorumLog) -> None:
    foreign = behind_snapshot(log, 5, epoch_ahead=1)
    agreed = committed([foreign, log, foreign], 3)
    assert agreed.batches == log.batches[5:]
    assert agreed.problems == (
        f"the metadata logs of a majority lack the offsets 0 to {foreign.start - 1}",
    )


def test_a_log_that_ends_before_the_snapshot_proves_nothing(log: QuorumLog) -> None:
    cut, short = behind_snapshot(log, 5), QuorumLog(log.batches[:4])
    assert committed([cut, short, cut], 3).batches == log.batches[5:]


def test_the_snapshots_of_a_voter_are_known_by_their_names(tmp_path: Path, data: bytes) -> None:
    names = (
        "00000000000000000035-0000000001.checkpoint",
        "00000000000000000120-0000000003.checkpoint",
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000130-0000000003.checkpoint.part",
        "bootstrap.checkpoint",
    )
    for name in names:
        (tmp_path / name).touch()
    log = voter(tmp_path, data)
    assert log.snapshots == (SnapshotId(35, 1), SnapshotId(120, 3))
    assert log.start == 0


def test_a_version_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="PartitionRecord: expected version 2 or less, got 3"):
        decode(bytes([1, 3, 3]))
    with pytest.raises(ValueError, match="expected a frame of version 1, got 0"):
        decode(bytes([0, 3, 0]))
    assert decode(bytes([1, 20, 0])) is None
    assert 20 not in SCHEMAS
