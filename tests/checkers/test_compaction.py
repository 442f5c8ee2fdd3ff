"""Compacted logs: what may be gone, and what is lost all the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    final,
    high_watermark,
    marker,
    poll,
    send,
    truncate,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.log import ClientLog
from nemesis.checkers.log.compaction import NEVER, UNKNOWN, Compaction, Reach, Sent
from nemesis.checkers.replication.commitment import NoTruncationBelowHw
from nemesis.checkers.replication.final_logs import FinalLogs
from nemesis.checkers.replication.log_start import LogStartBounded
from nemesis.checkers.replication.logs import ReplicaLogs
from nemesis.history.events import Event
from tests.checkers.histories import finding, only

Said = Event | list[Event]


def cleaned(time: int, node: int, last: int, *, mark: int = 100) -> Event:
    return broker(time, node, "log-cleaned", offset=0, last_offset=last, high_watermark=mark, **TP)


def batch_cleaned(time: int, node: int, epoch: int, offset: int, crc: int) -> Event:
    columns = {"offset": offset, "last_offset": offset, "crc": crc}
    return broker(time, node, "batch-cleaned", leader_epoch=epoch, **columns, **TP)


def keyed(time: int, value: int, key: int, outcome: str = "ok", **columns: Any) -> list[Event]:
    events = send(time, value, outcome, **columns)
    events[0].key = key
    return events


def tombstone(time: int, value: int, key: int, outcome: str = "ok", **columns: Any) -> list[Event]:
    events = keyed(time, value, key, outcome, **columns)
    events[0].tombstone = True
    return events


def result(name: str, *events: Said) -> Result:
    flat = [event for item in events for event in (item if isinstance(item, list) else [item])]
    return only(ClientLog(), flat, name)


LEADS = become_leader(0, 1, 0, 0)
MARK = high_watermark(1, 1, 0, 100, [1])
SUPERSEDED = [keyed(2, 7, 1, offset=0), keyed(4, 8, 1, offset=1), keyed(6, 9, 2, offset=2)]
LOSSES = ("lost-write", "unseen", "poll-skip")


class TestWhatClientsSee:
    def test_a_superseded_record_is_no_loss_that_acks_permits(self) -> None:
        superseded = keyed(2, 7, 1, offset=0, acks=1)
        judged = result("unseen", superseded, keyed(4, 8, 1, offset=1), final(20, {1: 8}))
        assert judged.numbers == {"acks_0_or_1_sends": 1, "acks_0_or_1_lost": 0}

    def test_a_superseded_record_may_be_gone(self) -> None:
        events: list[Said] = [LEADS, MARK, *SUPERSEDED, cleaned(8, 1, 1), final(20, {1: 8, 2: 9})]
        for name in LOSSES:
            assert result(name, *events).verdict == Verdict.VALID, name

    def test_an_aborted_tombstone_supersedes_nothing(self) -> None:
        written = keyed(2, 7, 1, offset=0)
        aborted: list[Said] = [
            tombstone(4, 8, 1, offset=1, producer_id=7),
            marker(5, 1, 2, first=1, outcome="abort"),
        ]
        behind: list[Said] = [
            keyed(6, 9, 2, offset=3),
            cleaned(8, 1, 3),
            cleaned(9, 1, 3),
            final(20, {3: 9}),
        ]
        judged = result("lost-write", LEADS, MARK, written, *aborted, *behind)
        assert [finding.verdict for finding in judged.findings] == [Verdict.INVALID]
        committed: list[Said] = [aborted[0], marker(5, 1, 2, first=1)]
        assert result("lost-write", LEADS, MARK, written, *committed, *behind).findings == ()

    def test_an_aborted_record_supersedes_nothing_before_a_later_one_is_sent(self) -> None:
        written = keyed(2, 7, 1, offset=0)
        aborted: list[Said] = [
            keyed(4, 8, 1, offset=1, producer_id=7),
            marker(5, 1, 2, first=1, outcome="abort"),
        ]
        early: list[Said] = [keyed(6, 9, 2, offset=3), cleaned(8, 1, 3), poll(9, 0, {3: 9})]
        later: list[Said] = [keyed(30, 10, 1, offset=4)]
        judged = result("lost-write", LEADS, MARK, written, *aborted, *early, *later)
        assert [finding.key for finding in judged.findings] == ["t-0"]

    def test_a_gap_of_superseded_and_of_aborted_records(self) -> None:
        """The cleaner has come by the first one only; the others are given to no reader of committed records."""
        written: list[Said] = [keyed(2, 7, 1, offset=0), keyed(3, 8, 2, offset=1, producer_id=7)]
        aborted = marker(5, 1, 2, first=1, outcome="abort")
        behind: list[Said] = [keyed(6, 9, 1, offset=3), cleaned(8, 1, 0), poll(9, 0, {3: 9})]
        for name in ("lost-write", "poll-skip"):
            assert result(name, LEADS, MARK, *written, aborted, *behind).findings == (), name
        missing: list[Said] = [*behind[:1], poll(9, 0, {3: 9})]
        assert result("poll-skip", LEADS, MARK, *written, aborted, *missing).findings

    def test_the_last_record_of_a_key_may_not(self) -> None:
        lost, reads = SUPERSEDED[1], final(20, {0: 7, 2: 9})
        judged = result("lost-write", LEADS, MARK, *SUPERSEDED, cleaned(8, 1, 1), reads)
        assert judged.findings == (
            finding(
                "lost-write",
                "t-0",
                "Value 8, committed at offset 1 of t-0, was gone when final-0 read past that offset.",
                lost[1],
                reads[1],
            ),
        )

    def test_nothing_is_gone_where_no_cleaner_has_been(self) -> None:
        for cleanings in ([], [cleaned(8, 1, 1)], [cleaned(18, 2, 2)]):
            events: list[Said] = [LEADS, MARK, *SUPERSEDED, keyed(12, 5, 2, offset=3), *cleanings]
            gone = final(20, {0: 7, 1: 8, 3: 5})
            expected = Verdict.VALID if cleanings and cleanings[0].node == 2 else Verdict.INVALID
            for name in LOSSES:
                assert result(name, *events, gone).verdict == expected, name

    def test_without_traces_a_cleaner_may_have_been_anywhere(self) -> None:
        assert result("unseen", *SUPERSEDED, final(20, {1: 8, 2: 9})).verdict == Verdict.VALID
        assert result("unseen", *SUPERSEDED, final(20, {0: 7, 2: 9})).verdict == Verdict.INVALID

    def test_a_record_that_is_superseded_later_may_not_be_gone_yet(self) -> None:
        first, skips = keyed(2, 7, 1, offset=0), poll(4, 0, {1: 9})
        rest: list[Said] = [keyed(3, 9, 2, offset=1), cleaned(3, 1, 1), keyed(8, 8, 1, offset=2)]
        ends = final(20, {1: 9, 2: 8})
        assert result("poll-skip", LEADS, MARK, first, *rest, skips, ends).verdict == "invalid"
        later = poll(10, 0, {1: 9, 2: 8})
        assert result("poll-skip", LEADS, MARK, first, *rest, later, ends).verdict == "valid"

    def test_a_send_of_unknown_outcome_may_have_superseded_it(self) -> None:
        first, perhaps = keyed(1, 7, 1, offset=0), keyed(2, 6, 1, "info", error="TIMED_OUT")
        rest: list[Said] = [keyed(3, 9, 2, offset=2), cleaned(3, 1, 2), keyed(8, 8, 1, offset=3)]
        skips, ends = poll(5, 0, {2: 9}), final(20, {2: 9, 3: 8})
        said: list[Said] = [LEADS, MARK, first, perhaps, *rest, skips]
        assert result("poll-skip", *said, ends).verdict == Verdict.VALID
        without_the_last: list[Said] = [item for item in said if item is not rest[2]]
        assert result("lost-write", *without_the_last, final(20, {2: 9})).verdict == Verdict.INVALID

    def test_nor_of_one_that_may_lie_where_nobody_has_read(self) -> None:
        first, perhaps = keyed(1, 7, 1, offset=0), keyed(2, 6, 1, "info", error="TIMED_OUT")
        rest: list[Said] = [keyed(3, 9, 2, offset=1), cleaned(4, 1, 8)]
        said: list[Said] = [LEADS, MARK, first, perhaps, *rest, poll(5, 0, {1: 9})]
        for mark, expected in ((2, Verdict.INVALID), (9, Verdict.VALID)):
            for name in ("lost-write", "poll-skip"):
                judged = result(name, *said, final(20, {1: 9}, mark=mark))
                assert judged.verdict == expected, (name, mark)

    def test_a_reader_goes_on_behind_what_is_gone_at_the_end_of_a_batch(self) -> None:
        events: list[Said] = [LEADS, MARK, *SUPERSEDED, keyed(8, 5, 2, offset=3), cleaned(10, 1, 2)]
        first, two = poll(12, 0, {1: 8}), poll(14, 3, {3: 5})
        assert result("poll-skip", *events, first, two).verdict == Verdict.VALID
        too_far = poll(14, 4, {})
        assert result("poll-skip", *events, first, too_far).verdict == Verdict.INVALID

    def test_a_tombstone_may_be_gone_once_two_compactions_have_passed_it(self) -> None:
        last = tombstone(6, 9, 2, offset=2)
        events: list[Said] = [LEADS, MARK, *SUPERSEDED[:2], last, cleaned(8, 1, 3)]
        gone = final(20, {1: 8, 3: 5})
        rest: list[Said] = [keyed(9, 5, 3, offset=3), gone]
        for name in LOSSES:
            assert result(name, *events, *rest).verdict == Verdict.INVALID, name
            assert result(name, *events, cleaned(10, 2, 3), *rest).verdict == Verdict.VALID, name
            early: list[Said] = [cleaned(3, 1, 3), *rest]
            assert result(name, *events, *early).verdict == Verdict.INVALID, name

    def test_a_tombstone_that_nobody_has_read_may_have_superseded_a_record(self) -> None:
        events: list[Said] = [LEADS, MARK, keyed(1, 7, 1, offset=0), keyed(5, 9, 2, offset=2)]
        hidden, plain = (
            send_of(2, 6, 1, "info", error="TIMED_OUT") for send_of in (tombstone, keyed)
        )
        twice: list[Said] = [cleaned(7, 1, 1), cleaned(9, 1, 1)]
        gone = final(20, {2: 9})
        for name in LOSSES:
            assert result(name, *events, hidden, *twice, gone).verdict == Verdict.VALID, name
            assert result(name, *events, hidden, twice[0], gone).verdict == Verdict.INVALID, name
            assert result(name, *events, plain, *twice, gone).verdict == Verdict.INVALID, name

    def test_a_send_that_certainly_failed_supersedes_nothing(self) -> None:
        begun: list[Said] = [LEADS, MARK, keyed(1, 7, 1, offset=0), keyed(5, 9, 2, offset=1)]
        twice: list[Said] = [cleaned(7, 1, 1), cleaned(9, 1, 1)]
        for send_of in (tombstone, keyed):
            failed = send_of(2, 6, 1, "fail", error="NOT_ENOUGH_REPLICAS")
            for reads in (final(20, {1: 9}), final(20, {1: 9}, mark=9)):
                for name in ("lost-write", "poll-skip"):
                    judged = result(name, *begun, failed, *twice, reads)
                    assert judged.verdict == Verdict.INVALID, name

    def test_a_send_that_failed_and_was_read_may_have_superseded_a_record(self) -> None:
        begun: list[Said] = [LEADS, MARK, keyed(1, 7, 1, offset=0)]
        failed = keyed(2, 6, 1, "fail", error="NOT_ENOUGH_REPLICAS")
        reads: list[Said] = [cleaned(7, 1, 1), final(20, {1: 6})]
        assert result("lost-write", *begun, failed, *reads).verdict == Verdict.VALID
        assert result("dirty-read", *begun, failed, *reads).verdict == Verdict.INVALID

    def test_without_keys_nothing_may_be_gone(self) -> None:
        events: list[Said] = [send(2, 7, offset=0), send(4, 8, offset=1), cleaned(5, 1, 1)]
        for name in LOSSES:
            assert result(name, LEADS, MARK, *events, final(20, {1: 8})).verdict == "invalid"

    def test_a_key_that_a_poll_names_is_the_key_of_no_record(self) -> None:
        skips = poll(6, 0, {1: 8})
        skips[0].key = 0
        events: list[Said] = [send(2, 7, offset=0), send(4, 8, offset=1), skips]
        for cleanings in ([], [cleaned(5, 1, 1)]):
            judged = result("poll-skip", LEADS, MARK, *events, *cleanings, final(20, {0: 7, 1: 8}))
            assert judged.verdict == Verdict.INVALID


sends = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 12), st.integers(0, 9)), max_size=8)


@given(sends, st.integers(0, 13), st.integers(0, 10), st.integers(0, 14), st.booleans())
def test_it_agrees_with_its_definition(
    said: list[tuple[int, int, int]], offset: int, time: int, reach: int, is_read_to_end: bool
) -> None:
    """By brute force, for every value."""
    said = [
        item
        for index, item in enumerate(said)
        if item[1] == UNKNOWN or item[1] not in [other[1] for other in said[:index]]
    ]
    keys = {value: key for value, (key, _, _) in enumerate(said)}
    offsets = {value: where for value, (_, where, _) in enumerate(said) if where != UNKNOWN}
    compaction = Compaction(
        keys,
        [Sent(value, index) for value, (_, _, index) in enumerate(said)],
        [(where, value, 0) for value, where in offsets.items()],
        Reach([0], [reach]),
        is_read_to_end=is_read_to_end,
    )
    for value, key in keys.items():
        same = [other for other in keys if keys[other] == key and other != value]
        behind = [other for other in same if offsets.get(other, UNKNOWN) > offset]
        unknown = [other for other in keys if keys[other] == key and other not in offsets]
        own = [value] if offsets.get(value, UNKNOWN) > offset else []
        in_time = [o for o in (*behind, *own, *unknown) if said[o][2] < time]
        is_followed = behind or own or (unknown and not is_read_to_end)
        expected = offset < reach and bool(is_followed) and bool(in_time)
        assert compaction.may_be_gone(offset, value, time) == expected
    assert not compaction.may_be_gone(0, 99, NEVER)


class TestReplicas:
    def test_a_batch_may_have_less_where_compaction_is_traced(self) -> None:
        original, copy = append(1, 1, 0, 3, crc=7, role="leader"), append(5, 2, 0, 3, crc=8)
        rewritten = batch_cleaned(4, 1, 0, 3, 8)
        matching = [MARK, original, rewritten, copy]
        assert only(ReplicaLogs(), matching, "log-matching").verdict == Verdict.VALID
        other = batch_cleaned(4, 1, 0, 2, 8)
        for events in ([MARK, original, copy], [MARK, original, other, copy]):
            assert only(ReplicaLogs(), events, "log-matching").verdict == Verdict.INVALID

    def test_files_are_compared_where_both_have_a_batch(self) -> None:
        def stored(node: int, *batches: tuple[int, int, int]) -> list[Event]:
            whole = harness(
                "stored-log", node, log_start_offset=0, log_end_offset=9, cleaner_offset=0
            )
            whole.high_watermark, whole.alive, whole.error = 9, True, "NONE"
            return [
                whole,
                *(
                    harness("stored-batch", node, offset=o, last_offset=o, leader_epoch=e, crc=crc)
                    for o, e, crc in batches
                ),
            ]

        traced = [append(1, 1, 0, 4, crc=6), cleaned(4, 1, 7), batch_cleaned(4, 1, 0, 4, 5)]
        whole = stored(1, *((o, 0, 6) for o in range(9)))
        kept = stored(2, (4, 0, 5), (8, 0, 6))
        assert only(FinalLogs(), [*traced, *whole, *kept]).verdict == Verdict.VALID
        for wrong in ((4, 1, 5), (4, 0, 4)):
            differs = stored(2, wrong, (8, 0, 6))
            assert only(FinalLogs(), [*traced, *whole, *differs]).verdict == Verdict.INVALID
        holed = stored(2, (4, 0, 5))
        assert only(FinalLogs(), [*traced, *whole, *holed]).verdict == Verdict.INVALID

    def test_nothing_is_compacted_above_the_high_watermark(self) -> None:
        bad = cleaned(4, 1, 5, mark=5)
        judged = only(LogStartBounded(), [cleaned(2, 1, 4, mark=5), bad])
        sentence = (
            "Broker 1 compacted its log of t-0 up to offset 5, though its high watermark was 5."
        )
        assert judged.findings == (finding("log-start-bounded", "t-0", sentence, bad),)

    def test_a_cut_below_a_mark_counts_where_compaction_has_not_been(self) -> None:
        marked = high_watermark(1, 1, 0, 5, [1, 2])
        cut = truncate(5, 2, 2)
        for last, expected in ((4, Verdict.VALID), (3, Verdict.INVALID)):
            events = [marked, cleaned(3, 1, last), cut]
            assert only(NoTruncationBelowHw(), events).verdict == expected


def harness(kind: str, node: int, **columns: Any) -> Event:
    return Event(time=50, process="harness", kind=kind, node=node, **columns, **TP)
