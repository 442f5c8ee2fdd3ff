"""Logs agree; new leaders have what was committed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import (
    TP,
    acknowledged,
    append,
    become_leader,
    broker,
    high_watermark,
    loaded,
    log_start,
    started,
    truncate,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.replication.logs import ReplicaLogs
from nemesis.checkers.replication.replica_log import UNKNOWN, ReplicaLog
from nemesis.history.events import Event
from tests.checkers.histories import finding, judge, only

COMPLETENESS, MATCHING = "leader-completeness", "log-matching"


class TestLogMatching:
    def test_the_same_batches_everywhere(self) -> None:
        events = [
            append(1, 1, 0, 0, last=2, crc=7, role="leader"),
            append(2, 2, 0, 0, last=2, crc=7),
        ]
        # Cut and fetched again: the same batch once more.
        events += [truncate(3, 2, 0), append(4, 2, 0, 0, last=2, crc=7), append(5, 2, 1, 3, crc=9)]
        result = only(ReplicaLogs(), events, MATCHING)
        assert (result.verdict, result.checked) == (Verdict.VALID, 4)

    def test_two_contents_of_one_batch(self) -> None:
        first, other = append(1, 1, 2, 3, crc=7, role="leader"), append(2, 2, 2, 3, crc=8)
        assert only(ReplicaLogs(), [first, other], MATCHING).findings == (
            finding(
                MATCHING,
                "t-0",
                "Two different batches of leader epoch 2 cover offset 3 of t-0: 3 to 3 with CRC 7, and 3 to "
                "3 with CRC 8.",
                first,
                other,
            ),
        )

    def test_overlapping_batches_of_one_epoch(self) -> None:
        events = [append(1, 1, 2, 3, last=6, crc=7), append(2, 2, 2, 5, crc=8)]
        assert only(ReplicaLogs(), events, MATCHING).verdict == Verdict.INVALID

    def test_other_epochs_may_differ(self) -> None:
        events = [append(1, 1, 2, 3, crc=7), append(2, 2, 3, 3, crc=8)]
        assert only(ReplicaLogs(), events, MATCHING).verdict == Verdict.VALID

    def test_a_replica_that_differs_below_the_high_watermark_at_the_end(self) -> None:
        # Broker 2 kept offset 1 of epoch 0, where the leader of epoch 1 wrote its own and committed it.
        events = [append(1, 1, 0, 0), append(2, 2, 0, 0), append(3, 2, 0, 1)]
        lead, other = become_leader(4, 1, 1, 1), append(5, 1, 1, 1, crc=5, role="leader")
        events += [lead, other, high_watermark(6, 1, 1, 2, [1, 2])]
        assert only(ReplicaLogs(), events, MATCHING).findings == (
            finding(
                MATCHING,
                "t-0",
                "Broker 2 holds a record of leader epoch 0 at offset 1 of t-0, below a high watermark of a leader "
                "that had it in its ISR, where leader 1 of epoch 1 has one of leader epoch 1.",
                # The append that wrote offset 1 there, and the one that wrote it here.
                events[2],
                lead,
                other,
            ),
        )

    def test_the_records_that_differ_are_shown_and_not_the_first_of_their_epoch(self) -> None:
        events = [append(1 + offset, 1, 0, offset, role="leader") for offset in range(18)]
        events += [append(20 + offset, 2, 0, offset) for offset in range(18)]
        events += [truncate(40, 1, 16), become_leader(41, 1, 1, 16)]
        events += [append(42 + offset, 1, 1, 16 + offset, role="leader") for offset in range(2)]
        # Broker 2 follows at offset 16 and keeps offset 17 of epoch 0.
        events += [truncate(50, 2, 16), append(51, 2, 1, 16), append(52, 2, 0, 17)]
        events += [high_watermark(53, 1, 1, 18, [1, 2])]
        (only_finding,) = only(ReplicaLogs(), events, MATCHING).findings
        assert "leader epoch 0 at offset 17" in only_finding.sentence
        shown = [event for event in only_finding.events if event["kind"] == "append"]
        assert [(event["leader_epoch"], event["offset"]) for event in shown] == [(1, 17), (0, 17)]

    def test_below_a_replicas_log_start_anything_may_be(self) -> None:
        """The leader cannot tell any more where epoch 1 began, and has its follower go on at its own log start."""
        events = [append(1, 1, 0, 0), append(2, 2, 0, 0), append(3, 2, 0, 1)]
        events += [become_leader(4, 1, 1, 1), append(5, 1, 1, 1, role="leader")]
        events += [append(6, 1, 1, 2, role="leader"), log_start(7, 1, 2, 3)]
        events += [truncate(8, 2, 2), append(9, 2, 1, 2)]
        mark = high_watermark(11, 1, 1, 3, [1, 2])
        passed = only(ReplicaLogs(), [*events, log_start(10, 2, 2, 3), mark], MATCHING)
        assert passed.verdict == Verdict.VALID
        crashed = loaded(12, 2, 3, log_start_offset=0)
        after_a_crash = [*events, log_start(10, 2, 2, 3), mark, crashed]
        assert only(ReplicaLogs(), after_a_crash, MATCHING).verdict == Verdict.VALID
        for kept in ([], [log_start(10, 2, 1, 3)], [log_start(10, 3, 2, 3)]):
            (only_finding,) = only(ReplicaLogs(), [*events, *kept, mark], MATCHING).findings
            assert "Broker 2 holds a record of leader epoch 0 at offset 1" in only_finding.sentence

    def test_a_log_that_begins_anew_is_looked_at_from_its_new_start(self) -> None:
        events = [append(1, 1, 0, 0), log_start(2, 2, 9, 9), loaded(3, 2, 0, log_start_offset=0)]
        events += [append(4, 2, 0, 0), append(5, 2, 0, 1), become_leader(6, 1, 1, 1)]
        events += [append(7, 1, 1, 1, role="leader"), high_watermark(8, 1, 1, 2, [1, 2])]
        assert only(ReplicaLogs(), events, MATCHING).verdict == Verdict.INVALID

    def test_a_replica_outside_the_isr_may_differ(self) -> None:
        events = [
            append(1, 1, 0, 0),
            append(2, 2, 0, 0),
            append(3, 2, 0, 1),
            become_leader(4, 1, 1, 1),
        ]
        events += [append(5, 1, 1, 1, role="leader"), high_watermark(6, 1, 1, 2, [1])]
        assert only(ReplicaLogs(), events, MATCHING).verdict == Verdict.VALID


class TestLeaderCompleteness:
    def test_a_leader_with_everything(self) -> None:
        events = [become_leader(1, 1, 0, 0), append(2, 1, 0, 0, role="leader"), append(3, 2, 0, 0)]
        events += [high_watermark(4, 1, 0, 1, [1, 2]), become_leader(5, 2, 1, 1)]
        result = only(ReplicaLogs(), events, COMPLETENESS)
        assert (result.verdict, result.checked) == (Verdict.VALID, 2)

    def test_a_leader_that_lacks_what_was_below_a_high_watermark(self) -> None:
        mark, lead = high_watermark(4, 1, 0, 5, [1, 2]), become_leader(5, 2, 1, 4)
        assert only(
            ReplicaLogs(), [become_leader(1, 1, 0, 0), mark, lead], COMPLETENESS
        ).findings == (
            finding(
                COMPLETENESS,
                "t-0",
                "Broker 2 became leader of t-0 in leader epoch 1 with records only below 4, though all below 5 were "
                "committed in an earlier leader epoch.",
                mark,
                lead,
            ),
        )

    def test_before_means_a_smaller_epoch_not_an_earlier_time(self) -> None:
        ack, lead = acknowledged(9, 1, 0, 4), become_leader(5, 2, 1, 4)
        result = only(ReplicaLogs(), [become_leader(1, 1, 0, 0), lead, ack], COMPLETENESS)
        kinds = [event["kind"] for event in result.findings[0].events]
        assert kinds == ["become-leader", "produce-acknowledged"], "the proof is told by time"
        late = [
            become_leader(1, 1, 1, 0),
            become_leader(9, 2, 0, 0),
            high_watermark(2, 1, 1, 5, [1]),
        ]
        assert only(ReplicaLogs(), late, COMPLETENESS).verdict == Verdict.VALID

    def test_acks_1_promise_nothing(self) -> None:
        events = [acknowledged(4, 1, 0, 4, acks=1), become_leader(5, 2, 1, 4)]
        assert only(ReplicaLogs(), events, COMPLETENESS).verdict == Verdict.VALID

    def test_a_leader_with_other_records(self) -> None:
        # Broker 2's log is long enough, but offset 0 is of a leader epoch that lost.
        events = [append(1, 2, 0, 0), become_leader(2, 1, 1, 0), append(3, 1, 1, 0, role="leader")]
        mark, lead = high_watermark(4, 1, 1, 1, [1]), become_leader(5, 2, 2, 1)
        assert only(ReplicaLogs(), [*events, mark, lead], COMPLETENESS).findings == (
            finding(
                COMPLETENESS,
                "t-0",
                "Broker 2 became leader of t-0 in leader epoch 2 with another record at offset 0 (of leader epoch 0) "
                "than the one committed there (of leader epoch 1).",
                events[0],
                mark,
                lead,
            ),
        )

    def test_what_a_killed_broker_did_not_trace_is_unknown_and_agrees(self) -> None:
        events = [become_leader(1, 1, 0, 0), append(2, 1, 0, 0, role="leader")]
        events += [high_watermark(3, 1, 0, 1, [1, 2]), loaded(4, 2, 1, incarnation=2)]
        events += [become_leader(5, 2, 1, 1, incarnation=2)]
        assert only(ReplicaLogs(), events, COMPLETENESS).verdict == Verdict.VALID

    def test_an_unclean_election_may_lose_and_is_reported(self) -> None:
        unclean = broker(5, 9, "leader-elected", leader=2, leader_epoch=1, strategy="unclean", **TP)
        events = [high_watermark(4, 1, 0, 5, [1]), unclean, become_leader(6, 2, 1, 2)]
        # What was lost there is not asked of later leaders either.
        events += [become_leader(7, 3, 2, 2)]
        result = only(ReplicaLogs(), events, COMPLETENESS)
        assert (result.verdict, result.finding_count) == (Verdict.VALID, 1)
        events.insert(0, started(1, 1, unclean=False))
        # Without permission it excuses nothing: both leaders lack what was committed.
        result = only(ReplicaLogs(), events, COMPLETENESS)
        assert (result.verdict, result.finding_count) == (Verdict.INVALID, 2)


_operations = st.lists(
    st.tuples(
        st.sampled_from(["append", "resize"]),
        st.integers(0, 9),
        st.integers(1, 3),
        st.integers(0, 3),
    ),
    max_size=12,
)


def _plain(operations: list[tuple[str, int, int, int]]) -> list[int]:
    """The same log as a list with one leader epoch per offset."""
    log: list[int] = []
    for action, start, length, epoch in operations:
        log = (log + [UNKNOWN] * start)[:start]
        if action == "append":
            log += [epoch] * length
    return log


def _modelled(operations: list[tuple[str, int, int, int]]) -> ReplicaLog:
    log = ReplicaLog()
    for action, start, length, epoch in operations:
        if action == "append":
            log.append(start, start + length, epoch)
        else:
            log.resize(start)
    return log


@given(_operations, _operations, st.integers(0, 5), st.integers(0, 12))
def test_the_model_of_a_log_agrees_with_a_plain_list(
    one: list[tuple[str, int, int, int]],
    other: list[tuple[str, int, int, int]],
    start: int,
    end: int,
) -> None:
    a, b = _plain(one), _plain(other)
    assert [_modelled(one).epoch_at(offset) for offset in range(len(a))] == a
    assert _modelled(one).end == len(a)
    differing = [
        offset
        for offset in range(start, min(end, len(a), len(b)))
        if UNKNOWN not in (a[offset], b[offset]) and a[offset] != b[offset]
    ]
    expected = differing[0] if differing else None
    assert _modelled(one).first_difference(_modelled(other), start, end) == expected


@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 4), st.integers(0, 1)),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.integers(0, 12)),
)
def test_log_matching_agrees_with_comparing_all_pairs(
    appends: list[tuple[int, int, int, int]], cuts: list[int]
) -> None:
    events: list[Event] = [
        append(time, node, epoch, offset, last=offset + crc, crc=crc)
        for time, (node, epoch, offset, crc) in enumerate(appends)
    ]
    clash = any(
        append[1] == other[1]
        and append[2:] != other[2:]
        and max(append[2], other[2]) <= min(append[2] + append[3], other[2] + other[3])
        for append in appends
        for other in appends
    )
    result = judge(ReplicaLogs(), events, cuts)[MATCHING]
    assert (result.verdict == Verdict.INVALID) == clash
    assert result == judge(ReplicaLogs(), events)[MATCHING]
