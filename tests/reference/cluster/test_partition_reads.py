"""Who may fetch what: epochs, divergence, and what a refused fetch must not leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition_reads import last_offset_for_leader_epoch
from nemesis.reference.log.errors import OffsetOutOfRangeError
from nemesis.reference.model import EpochEndOffset
from tests.reference.cluster.hosting import Host, lisr
from tests.reference.log.batches import batch


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Leader in epoch 4; its log: epoch 0 at 0..2, epoch 2 at 3..5, epoch 4 from 6, empty."""
    host = Host(tmp_path)
    host.partition.make_follower(lisr(leader=2))
    host.partition.append_as_follower(batch(3, leader_epoch=0), 0)
    host.partition.append_as_follower(batch(3, base_offset=3, leader_epoch=2), 0)
    host.partition.make_leader(lisr(leader_epoch=4))
    return host


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(3, ErrorCode.fenced_leader_epoch), (5, ErrorCode.unknown_leader_epoch)],
)
def test_another_leader_epoch_is_refused(host: Host, epoch: int, code: ErrorCode) -> None:
    with pytest.raises(ReplicaError) as refused:
        host.fetch(2, 6, epoch=epoch, last_epoch=2)
    assert refused.value.code is code
    assert host.partition.remote_replicas[2].log_end_offset == -1


def test_a_read_out_of_range_leaves_no_mark(host: Host) -> None:
    """KAFKA-8400."""
    with pytest.raises(OffsetOutOfRangeError):
        host.fetch(2, 7, epoch=4)
    assert host.partition.remote_replicas[2].log_end_offset == -1


@pytest.mark.parametrize(
    ("last_epoch", "fetch_offset", "diverging"),
    [
        (2, 6, None),
        (2, 5, None),
        (0, 3, None),
        (2, 8, EpochEndOffset(2, 6)),
        (0, 4, EpochEndOffset(0, 3)),
        (1, 3, EpochEndOffset(0, 3)),
        (3, 6, EpochEndOffset(2, 6)),
        (4, 6, None),
    ],
)
def test_a_log_that_differs_is_told_where(
    host: Host, last_epoch: int, fetch_offset: int, diverging: EpochEndOffset | None
) -> None:
    info = host.fetch(2, fetch_offset, epoch=4, last_epoch=last_epoch)
    assert info.diverging_epoch == diverging
    believed = host.partition.remote_replicas[2].log_end_offset
    assert believed == (fetch_offset if diverging is None else -1)
    assert bool(info.records) == (diverging is None and fetch_offset < 6)


def test_a_stranger_does_not_count(host: Host) -> None:
    with pytest.raises(ReplicaError) as refused:
        host.fetch(9, 6, epoch=4)
    assert refused.value.code is ErrorCode.unknown_leader_epoch
    with pytest.raises(ReplicaError) as refused:
        host.fetch(9, 6)
    assert refused.value.code is ErrorCode.not_leader_or_follower


def test_a_fetch_of_an_earlier_life_does_not_count(host: Host) -> None:
    host.fetch(2, 3, epoch=4, last_epoch=0)
    host.partition.remote_replicas[2].broker_epoch = 500
    with pytest.raises(ReplicaError) as refused:
        host.fetch(2, 6, epoch=4, last_epoch=2)
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert host.partition.remote_replicas[2].log_end_offset == 3


def test_a_new_leader_knows_the_end_of_the_epoch_before_its_own(host: Host) -> None:
    """KAFKA-7415: also while it has appended nothing itself."""
    assert last_offset_for_leader_epoch(host.partition, 4, 2) == EpochEndOffset(2, 6)
    assert last_offset_for_leader_epoch(host.partition, 4, 4) == EpochEndOffset(4, 6)
    assert last_offset_for_leader_epoch(host.partition, 4, 7) == EpochEndOffset(-1, -1)


def test_followers_do_not_answer(host: Host) -> None:
    host.partition.make_follower(lisr(leader=2, leader_epoch=5))
    with pytest.raises(ReplicaError) as refused:
        host.fetch(3, 6, epoch=5, last_epoch=2)
    assert refused.value.code is ErrorCode.not_leader_or_follower
