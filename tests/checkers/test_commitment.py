"""Committed records stay, and only they are acknowledged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nemesis.checkers.breaks.events import (
    TP,
    acknowledged,
    become_leader,
    broker,
    high_watermark,
    loaded,
    started,
    states,
    truncate,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.replication.commitment import AckAfterCommit, NoTruncationBelowHw
from nemesis.history.events import Event
from tests.checkers.histories import finding, judge, only


class TestNoTruncationBelowHw:
    def test_cuts_at_the_mark_and_of_outsiders(self) -> None:
        events = [high_watermark(1, 1, 0, 5, [1, 2]), truncate(2, 2, 5), truncate(3, 3, 0)]
        events += [loaded(4, 2, 7, incarnation=2)]
        result = only(NoTruncationBelowHw(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 3)

    def test_a_cut_below_the_mark(self) -> None:
        mark, cut = high_watermark(1, 1, 0, 5, [1, 2]), truncate(3, 2, 4)
        later = high_watermark(2, 1, 0, 9, [1])
        assert only(NoTruncationBelowHw(), [mark, later, cut]).findings == (
            finding(
                "no-truncation-below-hw",
                "t-0",
                "Broker 2 truncated its log at 4 in t-0, below the high watermark 5 of a leader that had it in its "
                "ISR.",
                mark,
                cut,
            ),
        )

    def test_a_cut_before_the_mark_is_another_matter(self) -> None:
        events = [truncate(1, 2, 4), high_watermark(2, 1, 0, 5, [1, 2])]
        assert only(NoTruncationBelowHw(), events).verdict == Verdict.VALID

    def test_a_reload_that_lost_committed_records(self) -> None:
        events = [high_watermark(1, 1, 0, 5, [1, 2]), loaded(3, 2, 4, incarnation=2)]
        result = only(NoTruncationBelowHw(), events)
        (only_finding,) = result.findings
        assert only_finding.sentence == (
            "Broker 2 came back with its log at 4 in t-0, below the high watermark 5 of a leader that had it in its "
            "ISR."
        )

    def test_a_move_that_left_committed_records_behind(self) -> None:
        moved = broker(3, 2, "log-dir-changed", path="/two", log_end_offset=4, **TP)
        events = [high_watermark(1, 1, 0, 5, [1, 2]), moved]
        result = only(NoTruncationBelowHw(), events)
        (only_finding,) = result.findings
        assert only_finding.sentence.startswith(
            "Broker 2 went on in another log directory at 4 in t-0, "
        )
        assert only_finding.sentence.endswith(
            "below the high watermark 5 of a leader that had it in its ISR."
        )

    def test_an_unclean_election_allows_it(self) -> None:
        unclean = broker(2, 9, "leader-elected", leader=3, leader_epoch=1, strategy="unclean", **TP)
        events = [high_watermark(1, 1, 0, 5, [1, 2]), unclean, truncate(3, 2, 4)]
        result = only(NoTruncationBelowHw(), events)
        assert (result.verdict, result.finding_count) == (Verdict.VALID, 1)
        result = only(NoTruncationBelowHw(), [started(0, 1, unclean=False), *events])
        assert (result.verdict, result.finding_count) == (Verdict.INVALID, 1)


class TestNoTruncationBelowOwnHw:
    """A replica's own high watermark binds it in the ISR and outside."""

    def test_a_cut_below_it(self) -> None:
        cut = truncate(1, 3, 4, high_watermark=4, high_watermark_before=5)
        assert only(NoTruncationBelowHw(), [cut]).findings == (
            finding(
                "no-truncation-below-hw",
                "t-0",
                "Broker 3 truncated its log at 4 in t-0, below its own high watermark 5.",
                cut,
            ),
        )

    def test_a_cut_at_it_and_above(self) -> None:
        events = [truncate(time, 3, 4, high_watermark_before=time) for time in range(5)]
        assert only(NoTruncationBelowHw(), events).findings == ()

    def test_a_cut_is_found_once(self) -> None:
        mark = high_watermark(1, 1, 0, 5, [1, 2])
        cut = truncate(2, 2, 4, high_watermark_before=5)
        [only_finding] = only(NoTruncationBelowHw(), [mark, cut]).findings
        assert only_finding.sentence.endswith("of a leader that had it in its ISR.")

    def test_histories_without_the_column_are_judged_as_before(self) -> None:
        assert only(NoTruncationBelowHw(), [truncate(1, 3, 4)]).verdict is Verdict.VALID

    def test_a_leader_that_lost_its_power_makes_others_cut(self) -> None:
        cut = truncate(2, 3, 4, high_watermark_before=5)
        assert only(NoTruncationBelowHw(), [power_cut(1, 1), cut]).findings == ()
        assert only(NoTruncationBelowHw(), [cut, power_cut(3, 1)]).finding_count == 1

    def test_compaction_hides_epochs(self) -> None:
        cleaned = broker(1, 1, "log-cleaned", offset=0, last_offset=7, **TP)
        cut = truncate(2, 3, 4, high_watermark_before=5)
        assert only(NoTruncationBelowHw(), [cleaned, cut]).findings == ()

    def test_an_unclean_election_allows_it(self) -> None:
        unclean = broker(2, 9, "leader-elected", leader=1, leader_epoch=1, strategy="unclean", **TP)
        cut = truncate(3, 3, 4, high_watermark_before=5)
        result = only(NoTruncationBelowHw(), [started(0, 1, unclean=True), unclean, cut])
        assert (result.verdict, result.finding_count) == (Verdict.VALID, 1)


def power_cut(time: int, *nodes: int) -> Event:
    return Event(
        time=time,
        process="nemesis",
        kind="fault-applied",
        seq=time,
        fault_id=0,
        fault="power-cut",
        targets=[f"broker-{node}" for node in nodes],
    )


class TestNoTruncationBelowHwAndPower:
    """A broker that lost its power is not bound by what was set before its next start, but by all that is set later."""

    def test_less_comes_back_and_is_cut_further(self) -> None:
        mark = high_watermark(1, 1, 0, 5, [1, 2])
        events = [mark, power_cut(2, 2), loaded(3, 2, 4), truncate(4, 2, 2)]
        result = only(NoTruncationBelowHw(), events)
        assert (result.verdict, result.checked, result.finding_count) == (Verdict.VALID, 2, 0)

    def test_another_broker_is_bound(self) -> None:
        events = [high_watermark(1, 1, 0, 5, [1, 2]), power_cut(2, 1, 3), loaded(3, 2, 4)]
        assert only(NoTruncationBelowHw(), events).finding_count == 1

    def test_power_that_goes_later_is_no_excuse(self) -> None:
        events = [high_watermark(1, 1, 0, 5, [1, 2]), loaded(3, 2, 4), power_cut(4, 2)]
        assert only(NoTruncationBelowHw(), events).finding_count == 1

    def test_another_fault_is_no_excuse(self) -> None:
        kill = msgspec.structs.replace(power_cut(2, 2), fault="kill")
        events = [high_watermark(1, 1, 0, 5, [1, 2]), kill, loaded(3, 2, 4)]
        assert only(NoTruncationBelowHw(), events).finding_count == 1

    def test_a_fetch_that_was_under_way_at_the_cut_binds_nobody(self) -> None:
        mark = high_watermark(3, 1, 0, 5, [1, 2])
        events = [power_cut(2, 2), mark, started(4, 2, unclean=False), loaded(5, 2, 4)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0
        assert (
            only(NoTruncationBelowHw(), [started(1, 2, unclean=False), *events]).finding_count == 0
        )
        assert (
            only(
                NoTruncationBelowHw(), [mark, started(4, 2, unclean=False), loaded(5, 2, 4)]
            ).finding_count
            == 1
        )

    def test_what_is_set_after_the_next_start_binds_even_if_it_is_lower(self) -> None:
        before = [
            high_watermark(1, 1, 0, 9, [1, 2]),
            power_cut(2, 2),
            started(3, 2, unclean=False),
            loaded(3, 2, 4),
        ]
        low, lower = high_watermark(4, 3, 1, 7, [2, 3]), high_watermark(5, 3, 1, 6, [2, 3])
        cut = truncate(6, 2, 6)
        result = only(NoTruncationBelowHw(), [*before, low, lower, cut])
        assert result.findings == (
            finding(
                "no-truncation-below-hw",
                "t-0",
                "Broker 2 truncated its log at 6 in t-0, below the high watermark 7 of a leader that had it in its "
                "ISR.",
                low,
                cut,
            ),
        )
        again = [power_cut(7, 2), loaded(8, 2, 5)]
        assert only(NoTruncationBelowHw(), [*before, low, lower, *again]).finding_count == 0


def isr(
    time: int, partition_epoch: int, *members: int, kind: str = "leader-elected", epoch: int = 1
) -> Event:
    epochs = {"partition_epoch": partition_epoch, "leader_epoch": epoch}
    return broker(time, 9, kind, isr=list(members), **epochs, **TP)


def deleted(time: int, node: int, how: str = "delete") -> Event:
    return broker(time, node, "replica-stopped", step=how, **TP)


MARK = high_watermark(1, 1, 0, 5, [1, 2])


class TestNoTruncationBelowHwAndReassignment:
    """A broker is freed when it deletes its log, but only if it had been taken out of the ISR before."""

    @pytest.mark.parametrize("kind", ["leader-elected", "isr-change-committed"])
    def test_a_removed_replica_that_comes_back_has_nothing(self, kind: str) -> None:
        events = [isr(0, 1, 1, 2), MARK, isr(2, 2, 1, kind=kind), deleted(3, 2), loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_one_that_was_killed_when_it_had_deleted_its_log_has_only_said_that_it_would(
        self,
    ) -> None:
        events = [isr(0, 1, 1, 2), MARK, isr(2, 2, 1), deleted(3, 2, "deleting"), loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_a_high_watermark_of_a_leader_that_had_not_heard_of_it_binds_nobody(self) -> None:
        late = high_watermark(3, 1, 0, 6, [1, 2])
        events = [MARK, isr(2, 2, 1), late, deleted(4, 2), loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_nor_does_one_that_it_sets_after_the_deletion(self) -> None:
        """Fetch requests that were held arrive late at a leader that is one no longer."""
        late = high_watermark(4, 1, 0, 6, [1, 2])
        events = [MARK, isr(2, 2, 1), deleted(3, 2), late, loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_what_the_present_leader_sets_binds_behind_one_that_does_not(self) -> None:
        back = [isr(5, 3, 1, 2), high_watermark(6, 1, 1, 3, [1, 2])]
        late = high_watermark(7, 3, 0, 9, [1, 2])
        cut = truncate(8, 2, 2)
        result = only(NoTruncationBelowHw(), [MARK, isr(2, 2, 1), deleted(3, 2), *back, late, cut])
        assert [item.sentence for item in result.findings] == [
            "Broker 2 truncated its log at 2 in t-0, below the high watermark 3 of a leader that had it in its ISR."
        ]

    def test_a_leader_that_had_proposed_it_for_the_isr_counts_a_log_that_is_gone(self) -> None:
        """A reassignment is changed for another: who was not in the ISR goes at once, and then the epoch rises."""
        counted = high_watermark(4, 1, 1, 6, [1], maximal_isr=[1, 2])
        back = [isr(5, 3, 1, epoch=2), isr(6, 4, 1, epoch=3), loaded(7, 2, 0)]
        late = high_watermark(8, 1, 1, 7, [1], maximal_isr=[1, 2])
        events = [MARK, isr(2, 2, 1), deleted(3, 2), counted, *back, late, truncate(9, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_what_it_found_in_the_isr_binds_behind_what_was_proposed(self) -> None:
        back = [isr(5, 3, 1, 2), high_watermark(6, 1, 1, 3, [1, 2])]
        proposed = high_watermark(7, 1, 1, 9, [1], maximal_isr=[1, 2])
        events = [MARK, isr(2, 2, 1), deleted(3, 2), *back, proposed, truncate(8, 2, 2)]
        assert [item.sentence for item in only(NoTruncationBelowHw(), events).findings] == [
            "Broker 2 truncated its log at 2 in t-0, below the high watermark 3 of a leader that had it in its ISR."
        ]

    @pytest.mark.parametrize(
        "before",
        [
            [deleted(3, 2)],
            [isr(2, 2, 1), deleted(3, 2), high_watermark(4, 1, 2, 3, [1], maximal_isr=[1, 2])],
            [isr(2, 2, 1, 2), deleted(3, 2)],
            [deleted(2, 2), isr(3, 2, 1)],
            [isr(2, 2, 1), deleted(3, 2, "stop")],
            [isr(2, 2, 1), deleted(3, 1)],
            [isr(1, 2, 1), isr(2, 3, 1, 2), deleted(3, 2)],
            [isr(1, 3, 1, 2), isr(2, 2, 1, kind="isr-change-committed"), deleted(3, 2)],
            [isr(2, 2, 1), deleted(3, 2), high_watermark(4, 1, 1, 3, [1, 2])],
        ],
    )
    def test_what_is_no_excuse(self, before: list[Event]) -> None:
        result = only(NoTruncationBelowHw(), [MARK, *before, loaded(5, 2, 0)])
        assert result.finding_count == 1


def gone(time: int, change: str = "Offline->NonExistent", **columns: Any) -> Event:
    return broker(time, 9, "transition", **states(change), **columns, **TP)


class TestNoTruncationBelowHwAndDeletion:
    """A broker is freed by the deletion of the topic, whoever is in the ISR."""

    def test_a_broker_that_is_back_before_the_deletion_is_over_has_nothing(self) -> None:
        shrunk = isr(3, 2, 2)  # the last member stays in the ISR
        events = [isr(0, 1, 1, 2), MARK, gone(2), shrunk, deleted(4, 2), loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    def test_nobody_binds_it_any_more_whatever_a_leader_sets_that_has_not_heard_of_it(self) -> None:
        late = high_watermark(4, 1, 7, 6, [1, 2])
        events = [isr(0, 1, 1, 2), MARK, gone(2), deleted(3, 2), late, loaded(5, 2, 0)]
        assert only(NoTruncationBelowHw(), events).finding_count == 0

    @pytest.mark.parametrize(
        "before",
        [
            [gone(2)],
            [deleted(2, 2), gone(3)],
            [gone(2, replica=1), deleted(3, 2)],
            [gone(2, "Online->Offline"), deleted(3, 2)],
            [gone(2, error="ILLEGAL_TRANSITION"), deleted(3, 2)],
            [gone(2), deleted(3, 1)],
        ],
    )
    def test_what_is_no_excuse(self, before: list[Event]) -> None:
        result = only(NoTruncationBelowHw(), [isr(0, 1, 1, 2), MARK, *before, loaded(5, 2, 0)])
        assert result.finding_count == 1


class TestAckAfterCommit:
    def test_an_acknowledgement_below_the_mark(self) -> None:
        events = [high_watermark(1, 1, 0, 6, [1, 2]), acknowledged(2, 1, 0, 5)]
        result = only(AckAfterCommit(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 1)

    def test_an_acknowledgement_before_the_mark(self) -> None:
        mark = high_watermark(1, 1, 0, 5, [1, 2])
        early = acknowledged(2, 1, 0, 5, high_watermark=5)
        result = only(AckAfterCommit(), [mark, early, high_watermark(3, 1, 0, 6, [1, 2])])
        assert result.findings == (
            finding(
                "ack-after-commit",
                "t-0",
                "Leader 1 acknowledged offset 5 of t-0 under acks=all while its high watermark had not passed 5.",
                mark,
                early,
            ),
        )

    def test_a_mark_of_zero_is_shown_wherever_the_history_is_cut(self) -> None:
        mark, early = become_leader(1, 1, 0, 0), acknowledged(2, 1, 0, 0, high_watermark=0)
        for cuts in ([], [1]):
            [only_finding] = judge(AckAfterCommit(), [mark, early], cuts)[
                "ack-after-commit"
            ].findings
            assert len(only_finding.events) == 2

    def test_a_leader_that_was_demoted_before_it_answered(self) -> None:
        # Its own high watermark has fallen since, but it had passed the record.
        events = [high_watermark(1, 1, 0, 6, [1, 2]), acknowledged(2, 1, 0, 5, high_watermark=3)]
        assert only(AckAfterCommit(), events).verdict == Verdict.VALID

    def test_a_mark_that_it_was_elected_with_counts(self) -> None:
        events = [become_leader(1, 1, 0, 6, high_watermark=6)]
        events += [acknowledged(2, 1, 0, 5, high_watermark=3)]
        assert only(AckAfterCommit(), events).verdict == Verdict.VALID

    def test_acks_1_promise_nothing(self) -> None:
        events = [acknowledged(2, 1, 0, 5, acks=1, high_watermark=0), acknowledged(3, 1, 0, 6)]
        assert only(AckAfterCommit(), events).verdict == Verdict.VALID

    def test_no_acknowledgement_is_unknown(self) -> None:
        assert only(AckAfterCommit(), [high_watermark(1, 1, 0, 5, [1])]).verdict == "unknown"
