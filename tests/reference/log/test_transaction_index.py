"""The index of aborted transactions, and the last stable offset: against models, through cuts, crashes and cleaning."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.transaction_index import decoded, encoded
from nemesis.reference.model import AbortedTransaction, TopicPartition
from nemesis.reference.protocol.control_records import ControlRecordType, read_marker
from nemesis.reference.protocol.record_batch import iter_batches
from tests.reference.log.batches import PRODUCERS
from tests.reference.log.logs import MANY
from tests.reference.log.transactions import (
    ABORT,
    COMMIT,
    DATA,
    MARKERS,
    WRITES,
    Producers,
    Write,
    end,
    send,
)

SMALL_SEGMENT = 300


def opened(
    directory: Path,
    *,
    high_watermark: int = 0,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    segment_bytes: int = SMALL_SEGMENT,
    was_clean: bool = False,
) -> Log:
    return Log(
        TopicPartition("t", 0),
        str(directory / "t-0"),
        disk=RealDisk(),
        config=LogConfig(segment_bytes=segment_bytes),
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        had_clean_shutdown=was_clean,
        **PRODUCERS,
    )


def entries_of(log: Log) -> list[AbortedTransaction]:
    return [entry for segment in log.segments for entry in segment.transactions.entries]


class Transaction(NamedTuple):
    producer_id: int
    first_offset: int
    marker: int | None
    is_aborted: bool = False


def transactions_of(log: Log) -> list[Transaction]:
    """What the batches of the log say, read from its start; the model of everything here."""
    open_since: dict[int, int] = {}
    ended: list[Transaction] = []
    offset = log.segments[0].base_offset
    while offset < log.log_end_offset:
        data = log.segments[_segment_of(log, offset)].read(offset, MANY, MANY, min_one_message=True)
        for header in iter_batches(data):
            producer_id, base = header.producer_id, header.base_offset
            if header.is_control:
                batch = data[header.position : header.position + header.size_in_bytes]
                marker = read_marker(batch, header)
                assert marker is not None
                if (first := open_since.pop(producer_id, None)) is not None:
                    is_aborted = marker.control_type is ControlRecordType.ABORT
                    ended.append(Transaction(producer_id, first, base, is_aborted))
            elif header.is_transactional:
                open_since.setdefault(producer_id, base)
            offset = header.last_offset + 1
    return ended + [Transaction(*item, None) for item in open_since.items()]


def _segment_of(log: Log, offset: int) -> int:
    return max(i for i, segment in enumerate(log.segments) if segment.base_offset <= offset)


def indexed(transactions: list[Transaction]) -> list[AbortedTransaction]:
    """The entries that these transactions should have, by their markers."""
    entries = []
    for aborted in transactions:
        if aborted.is_aborted and aborted.marker is not None:
            open_then = [
                other.first_offset
                for other in transactions
                if other.first_offset < aborted.marker
                and (other.marker is None or other.marker > aborted.marker)
            ]
            last_stable = min(open_then, default=aborted.marker + 1)
            entries.append(
                AbortedTransaction(
                    aborted.producer_id, aborted.first_offset, aborted.marker, last_stable
                )
            )
    return entries


def stable(log: Log, transactions: list[Transaction], *, unreplicated: bool = True) -> int:
    """The last stable offset by the definition."""
    high_watermark = log.high_watermark
    unstable = [
        transaction.first_offset
        for transaction in transactions
        if transaction.marker is None or (unreplicated and transaction.marker >= high_watermark)
    ]
    return min(high_watermark, max(min(unstable, default=high_watermark), log.log_start_offset))


def test_the_last_stable_offset_waits_for_the_marker_and_its_replication(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.last_stable_offset == 0
    send(log, 0, producer_id=9, is_transactional=False)
    send(log, 0)
    send(log, 1)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1
    end(log)
    assert log.last_stable_offset == 1
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4


def test_the_last_stable_offset_is_never_below_the_start_of_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    send(log, 0, producer_id=9, is_transactional=False, count=3)
    log.update_high_watermark(4)
    assert log.last_stable_offset == 0
    log.maybe_increment_log_start_offset(2, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION)
    assert log.last_stable_offset == 2


def test_a_truncated_marker_leaves_its_transaction_open(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    end(log, ABORT)
    log.update_high_watermark(1)
    log.truncate_to(1)
    assert entries_of(log) == []
    assert log.last_stable_offset == 0
    end(log, COMMIT)
    log.update_high_watermark(2)
    assert entries_of(log) == []
    assert log.last_stable_offset == 2


STEPS = st.lists(
    st.one_of(
        DATA,
        DATA,
        MARKERS,
        st.tuples(
            st.sampled_from(["hw", "truncate", "delete", "reopen", "kill"]), st.integers(0, 40)
        ),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(STEPS)
def test_the_log_agrees_with_its_batches_after_each_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Write | tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    log, producers = opened(directory), Producers()
    is_exact = True
    for step in steps:
        if isinstance(step, Write):
            producers.write(log, step)
        else:
            name, number = step
            if name == "hw":
                log.update_high_watermark(max(number, log.high_watermark))
            elif name == "truncate":
                log.truncate_to(number)
                producers = Producers.of(log)
            elif name == "delete" and number <= log.high_watermark:
                log.maybe_increment_log_start_offset(
                    number, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION
                )
            elif name in ("reopen", "kill"):
                log = reopened(log, directory, was_clean=name == "reopen", number=number)
                is_exact = False
        model = transactions_of(log)
        assert entries_of(log) == indexed(model)
        if log.high_watermark == log.log_end_offset:
            is_exact = True
        expected = stable(log, model)
        if is_exact:
            assert log.last_stable_offset == expected
        else:
            undecided = stable(log, model, unreplicated=False)
            assert expected <= log.last_stable_offset <= undecided


def reopened(log: Log, directory: Path, *, was_clean: bool, number: int) -> Log:
    if was_clean:
        log.close()
    return opened(
        directory,
        high_watermark=log.high_watermark,
        log_start_offset=log.log_start_offset,
        recovery_point=min(number, log.recovery_point),
        was_clean=was_clean,
    )


@settings(max_examples=60)
@given(WRITES, st.integers(0, 60), st.integers(0, 60))
def test_a_search_yields_the_aborted_transactions_of_a_range(
    tmp_path_factory: pytest.TempPathFactory, writes: list[Write], start: int, size: int
) -> None:
    """Up to the last stable offset, in which all that are aborted have their markers."""
    log, producers = opened(tmp_path_factory.mktemp("logs")), Producers()
    for write in writes:
        producers.write(log, write)
    log.update_high_watermark(log.log_end_offset)
    end_offset = min(start + size, log.last_stable_offset)
    collected = log.collect_aborted_transactions(start, end_offset)
    overlapping = [
        entry
        for entry in indexed(transactions_of(log))
        if entry.last_offset >= start and entry.first_offset < end_offset
    ]
    assert collected == overlapping


@settings(max_examples=40)
@given(WRITES, st.integers(0, 10), st.booleans())
def test_an_index_that_is_damaged_is_built_again(
    tmp_path_factory: pytest.TempPathFactory, writes: list[Write], number: int, is_cut: bool
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    log, producers = opened(directory), Producers()
    for write in writes:
        producers.write(log, write)
    entries = entries_of(log)
    log.close()
    files = sorted((directory / "t-0").glob("*.txnindex"))
    if files:
        path = files[number % len(files)]
        data = path.read_bytes()
        if is_cut:
            path.write_bytes(data[:-1])
        else:
            damaged = bytearray(data)
            damaged[0] ^= 0x80
            path.write_bytes(damaged)
    assert entries_of(opened(directory, was_clean=True)) == entries


def test_the_file_has_kafkas_layout(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0, producer_id=9)
    send(log, 0)
    end(log, ABORT)
    (path,) = (tmp_path / "t-0").glob("*.txnindex")
    fields = ["0000", f"{7:016x}", f"{1:016x}", f"{2:016x}", f"{0:016x}"]
    assert path.name == f"{0:020d}.txnindex"
    assert path.read_bytes().hex() == "".join(fields)


def test_a_log_without_aborted_transactions_has_no_index(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, 0)
    end(log, COMMIT)
    end(log, ABORT, producer_id=8)
    log.close()
    assert not list((tmp_path / "t-0").glob("*.txnindex"))


def test_indexes_go_with_their_segments(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for sequence in range(6):
        send(log, sequence)
        end(log, ABORT)
    log.update_high_watermark(log.log_end_offset)
    start = log.segments[-1].base_offset
    log.maybe_increment_log_start_offset(start, LogStartOffsetIncrementReason.SEGMENT_DELETION)
    before = {path.name for path in (tmp_path / "t-0").glob("*.txnindex")}
    assert len(before) == len(log.segments)
    log.delete_old_segments()
    left = {path.name for path in (tmp_path / "t-0").glob("*.txnindex*")}
    assert left == {f"{segment.base_offset:020d}.txnindex" for segment in log.segments}
    log.truncate_fully_and_start_at(100)
    assert not list((tmp_path / "t-0").glob("*.txnindex*"))
    assert log.last_stable_offset == 100


ENTRIES = st.lists(
    st.builds(
        AbortedTransaction,
        *[st.integers(0, 2**62)] * 2,
        st.integers(5, 2**62),
        st.integers(0, 2**62),
    ),
    unique_by=lambda entry: entry.last_offset,
).map(lambda entries: sorted(entries, key=lambda entry: entry.last_offset))


@given(ENTRIES, st.data())
def test_a_file_is_read_as_written_and_never_cut_within_an_entry(
    entries: list[AbortedTransaction], data: st.DataObject
) -> None:
    written = b"".join(map(encoded, entries))
    assert decoded(written, 5) == entries
    size = data.draw(st.integers(0, len(written)))
    expected = None if size % 34 else entries[: size // 34]
    assert decoded(written[:size], 5) == expected
    if entries:
        assert decoded(written, entries[0].last_offset + 1) is None
        assert decoded(written + encoded(entries[-1]), 5) is None
