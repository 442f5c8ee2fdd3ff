from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.log.time_index import TimeIndex
from tests.reference.log.batches import batch
from tests.reference.log.logs import open_log

appends = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=30)


def built(steps: list[tuple[int, int]]) -> tuple[TimeIndex, list[tuple[int, int]]]:
    """An index of batches that end at rising offsets, and the largest timestamp so far at each."""
    index, offset, largest, appended = TimeIndex(100), 99, -1, []
    for timestamp, count in steps:
        offset += count
        largest = max(largest, timestamp)
        index.maybe_append(largest, offset)
        appended.append((timestamp, offset))
    return index, appended


@given(steps=appends, wanted=st.integers(-1, 60))
def test_a_lookup_never_passes_what_is_wanted(steps: list[tuple[int, int]], wanted: int) -> None:
    index, appended = built(steps)
    first = next((offset for timestamp, offset in appended if timestamp >= wanted), None)
    floor = index.lookup(wanted)
    assert first is None or floor <= first
    assert floor == 100 or any(offset == floor for _, offset in appended)


@given(steps=appends, cut=st.integers(100, 250))
def test_truncation_and_the_file_keep_the_rest(steps: list[tuple[int, int]], cut: int) -> None:
    index, appended = built(steps)
    index.truncate_to(cut)
    assert index.last.offset < cut or not len(index)
    data = index.to_bytes()
    again = TimeIndex.from_bytes(data, base_offset=100, next_offset=cut)
    assert again is not None
    assert again.to_bytes() == data
    for wanted in range(-1, 60):
        first = next((o for t, o in appended if t >= wanted and o < cut), None)
        assert first is None or again.lookup(wanted) <= first


def test_what_cannot_be_an_index_is_refused() -> None:
    entry = struct.Struct(">qi")
    for data in (
        b"x",
        entry.pack(5, 3) + entry.pack(5, 4),
        entry.pack(5, 3) + entry.pack(6, 3),
        entry.pack(5, 30),
    ):
        assert TimeIndex.from_bytes(data, base_offset=0, next_offset=30) is None


def test_the_time_index_file_is_in_kafkas_format(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=10_000)
    for timestamp in (100, 300, 200, 250, 400):
        log.append_as_leader(batch(2, payload=b"x" * 2500, timestamp=timestamp), 0)
    rolled = (tmp_path / "t-0" / ("0" * 20 + ".timeindex")).read_bytes()
    # One for the batch that got an entry in the offset index; the last one says the same and is left out.
    assert rolled == struct.pack(">qi", 300, 3)


def test_time_is_found_with_and_without_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=20_000)
    for i in range(40):
        log.append_as_leader(batch(1, payload=b"x" * 1500, timestamp=1000 + i // 3 * 10), 0)
    expected = {t: log.offset_for_timestamp(t) for t in range(995, 1140)}
    assert expected[1005] == (1010, 3, 0)
    assert expected[1131] is None
    for damage in (None, "missing", "short"):
        for file in (tmp_path / "t-0").glob("*.timeindex"):
            if damage == "missing":
                file.unlink()
            elif damage == "short":
                file.write_bytes(file.read_bytes()[:-5])
        again = open_log(tmp_path, segment_bytes=20_000)
        assert {t: again.offset_for_timestamp(t) for t in range(995, 1140)} == expected
