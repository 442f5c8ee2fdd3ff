from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.leader_epoch_file_cache import LeaderEpochFileCache, assign_all
from nemesis.reference.model import OffsetAndEpoch


class MemoryFile(RealDisk):
    """Keeps what ``replace`` writes: the algebra of epochs is tested here, files in test_disk."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[str, bytes] = {}

    def replace(self, path: str, data: bytes) -> None:
        self.contents[path] = data

    def exists(self, path: str) -> bool:
        return path in self.contents

    def size(self, path: str) -> int:
        return len(self.contents[path])

    def read(self, path: str, offset: int, size: int) -> bytes:
        return self.contents[path][offset : offset + size]


def cache(*entries: tuple[int, int]) -> LeaderEpochFileCache:
    result = LeaderEpochFileCache(MemoryFile(), "epochs")
    for epoch, start in entries:
        result.assign(epoch, start)
    return result


def end(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(offset=offset, leader_epoch=epoch)


def test_the_latest_epoch_ends_at_the_log_end() -> None:
    assert cache((2, 0), (4, 10)).end_offset_for(4, 25) == end(25, 4)


def test_an_earlier_epoch_ends_where_the_next_one_starts() -> None:
    assert cache((2, 0), (4, 10)).end_offset_for(2, 25) == end(10, 2)


def test_an_epoch_never_seen_answers_with_the_one_before_it() -> None:
    assert cache((2, 0), (4, 10)).end_offset_for(3, 25) == end(10, 2)


def test_an_epoch_before_the_first_ends_at_its_start() -> None:
    assert cache((2, 7), (4, 10)).end_offset_for(1, 25) == end(7, 1)


def test_a_later_epoch_than_any_known_cannot_be_answered() -> None:
    assert cache((2, 0), (4, 10)).end_offset_for(5, 25) is None


def test_no_epochs_or_the_undefined_one_cannot_be_answered() -> None:
    assert cache().end_offset_for(0, 25) is None
    assert cache((0, 0)).end_offset_for(-1, 25) is None


def test_a_leader_without_data_still_knows_where_the_epoch_before_ended() -> None:
    """KAFKA-7415: two elections without a write in between."""
    assert cache((1, 0), (2, 10), (3, 10)).end_offset_for(1, 10) == end(10, 1)


def test_epoch_0_is_an_epoch() -> None:
    """KAFKA-10432."""
    assert cache((0, 0)).latest_epoch == 0
    assert cache((0, 0)).end_offset_for(0, 3) == end(3, 0)


def test_an_epoch_keeps_its_first_start() -> None:
    epochs = cache((1, 0), (2, 5))
    assert not epochs.assign(2, 9)
    assert epochs.entries == ((1, 0), (2, 5))


def test_an_assignment_removes_what_it_contradicts() -> None:
    assert cache((1, 0), (2, 5), (4, 9)).entries == ((1, 0), (2, 5), (4, 9))
    assert cache((1, 0), (2, 5), (4, 9), (3, 7)).entries == ((1, 0), (2, 5), (3, 7))
    assert cache((1, 0), (2, 5), (3, 5)).entries == ((1, 0), (3, 5))


def test_truncate_from_start_keeps_the_epoch_in_force() -> None:
    epochs = cache((1, 0), (2, 5), (4, 9))
    epochs.truncate_from_start(7)
    assert epochs.entries == ((2, 7), (4, 9))


def test_a_file_that_cannot_be_written_leaves_memory_as_it_was(tmp_path: Path) -> None:
    epochs = LeaderEpochFileCache(RealDisk(), str(tmp_path / "absent" / "epochs"))
    with pytest.raises(OSError):
        epochs.assign(1, 0)
    assert epochs.latest_epoch is None


@pytest.mark.parametrize(
    "text", ["", "0\n", "1\n0\n", "0\n2\n1 0\n", "0\n1\n1 x\n", "0\n1\n1\n", "0\n2\n2 0\n1 5\n"]
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "epochs"
    path.write_text(text)
    with pytest.raises(KafkaStorageError):
        LeaderEpochFileCache(RealDisk(), str(path))


class EpochPerRecord:
    """The brute-force model: one epoch written on every record, and the latest one, which may have none."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.empty: int | None = None

    @property
    def latest(self) -> int | None:
        if self.empty is not None:
            return self.empty
        return self.records[-1] if self.records else None

    def append(self, count: int) -> None:
        assert self.latest is not None
        self.records += [self.latest] * count
        self.empty = None

    def truncate(self, offset: int) -> None:
        self.records = self.records[:offset]
        self.empty = None

    def end_offset_for(self, epoch: int) -> OffsetAndEpoch | None:
        known = {*self.records, self.latest} - {None}
        if not known or self.latest is None or epoch > self.latest:
            return None
        floor = max((e for e in known if e is not None and e <= epoch), default=epoch)
        later = [offset for offset, e in enumerate(self.records) if e > epoch]
        if floor == self.latest:
            return end(len(self.records), floor)
        return end(later[0] if later else len(self.records), floor)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("lead"), st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=25,
)


@given(steps)
def test_agrees_with_an_epoch_written_on_every_record(steps: list[tuple[str, int]]) -> None:
    disk = MemoryFile()
    epochs = LeaderEpochFileCache(disk, "epochs")
    model = EpochPerRecord()
    newest = -1
    for step, argument in steps:
        if step == "lead":
            newest += argument
            epochs.assign(newest, len(model.records))
            model.empty = newest
        elif step == "append" and model.latest is not None:
            epochs.assign(model.latest, len(model.records))
            model.append(argument)
        elif step == "truncate" and argument <= len(model.records):
            epochs.truncate_from_end(argument)
            model.truncate(argument)
        else:
            epochs = LeaderEpochFileCache(disk, "epochs")
        assert epochs.latest_epoch == model.latest
        for epoch in range(-1, newest + 3):
            expected = model.end_offset_for(epoch) if epoch >= 0 else None
            assert epochs.end_offset_for(epoch, len(model.records)) == expected
        for offset, epoch in enumerate(model.records):
            assert epochs.epoch_for_offset(offset) == epoch


def test_epochs_assigned_at_once_are_those_assigned_one_by_one(tmp_path: Path) -> None:
    disk = RealDisk()
    starts = [(0, 0), (3, 7), (3, 9), (-1, 4)]
    together = [LeaderEpochFileCache(disk, str(tmp_path / f"a{i}")) for i in range(len(starts))]
    alone = [LeaderEpochFileCache(disk, str(tmp_path / f"b{i}")) for i in range(len(starts))]
    for assigned in (*together, *alone):
        assigned.assign(2, 8)
    assign_all(disk, ((cache, *start) for cache, start in zip(together, starts, strict=True)))
    for cache, start in zip(alone, starts, strict=True):
        cache.assign(*start)
    assert [cache.entries for cache in together] == [cache.entries for cache in alone]
    assert len({cache.entries for cache in together}) > 2
    assert [cache.latest_epoch for cache in together] == [cache.latest_epoch for cache in alone]
    for cache in together:
        assert LeaderEpochFileCache(disk, cache.path).entries == cache.entries


def test_one_whose_file_cannot_be_written_stays_as_it_was_and_the_others_do_not(
    tmp_path: Path,
) -> None:
    disk = RealDisk()
    caches = [LeaderEpochFileCache(disk, str(tmp_path / name / "epochs")) for name in "ab"]
    (tmp_path / "b").mkdir()
    assign_all(disk, ((cache, 1, 0) for cache in caches))
    assert [cache.latest_epoch for cache in caches] == [None, 1]
    with pytest.raises(FileNotFoundError):
        caches[0].assign(1, 0)
