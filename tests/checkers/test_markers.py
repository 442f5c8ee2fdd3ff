"""Markers of transactions, and transactions that hang: what breaks the properties, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.events import (
    TP,
    become_leader,
    broker,
    history,
    loaded,
    marker,
    truncate,
)
from nemesis.checkers.breaks.hanging import added, harness, measured, opened, settings
from nemesis.checkers.breaks.markers import completed, stored_log, stored_marker
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.transactions.hanging import HangingTransactions
from nemesis.checkers.transactions.kept_markers import KeptMarkers
from nemesis.checkers.transactions.markers import Markers
from nemesis.history.events import Event
from tests.checkers.histories import judge, only

Said = Event | list[Event]


def verdict(name: str, *events: Said) -> Verdict:
    return judge(Markers(), history(*events))[name].verdict


class TestMarkerEpochs:
    name = "marker-epoch-grows"

    def test_raised_coordinator_epochs_are_counted(self) -> None:
        events = [
            marker(1, 1, 1, coordinator_epoch=1),
            marker(2, 2, 1, coordinator_epoch=1),
            marker(3, 1, 2, coordinator_epoch=4),
            marker(4, 1, 3, coordinator_epoch=4, producer_id=8),
        ]
        judged = only(Markers(), history(*events), self.name)
        assert judged.numbers == {"raised_coordinator_epochs": 1}

    def test_replicas_and_producers_are_apart(self) -> None:
        events = [
            marker(1, 1, 1, coordinator_epoch=2),
            marker(2, 2, 1, coordinator_epoch=1),
            marker(3, 1, 2, coordinator_epoch=1, producer_id=8),
            marker(4, 1, 3, coordinator_epoch=2),
        ]
        assert verdict(self.name, *events) is Verdict.VALID

    def test_a_marker_that_was_cut_does_not_count(self) -> None:
        first, second = (
            marker(1, 1, 5, coordinator_epoch=2),
            marker(9, 1, 5, coordinator_epoch=1),
        )
        for cut in (truncate(3, 1, 5), loaded(3, 1, 4), truncate(3, 1, 9, log_start_offset=9)):
            assert verdict(self.name, first, cut, second) is Verdict.VALID
        assert verdict(self.name, first, truncate(3, 1, 6), second) is Verdict.INVALID

    @pytest.mark.parametrize(
        ("step", "expected"), [("stop", Verdict.INVALID), ("deleting", Verdict.VALID)]
    )
    def test_a_replica_that_is_deleted_begins_anew(self, step: str, expected: Verdict) -> None:
        first, second = (
            marker(1, 1, 5, coordinator_epoch=2),
            marker(9, 1, 5, coordinator_epoch=1),
        )
        stopped = broker(3, 1, "replica-stopped", step=step, topic="t", partition=0)
        assert verdict(self.name, first, stopped, second) is expected

    def test_a_finding_names_both_markers(self) -> None:
        events = (
            stored_marker(1, 1, 1, coordinator_epoch=2),
            stored_marker(2, 1, 4, coordinator_epoch=1),
        )
        [item] = judge(Markers(), history(*events))[self.name].findings
        assert item.sentence == (
            "In the files of broker 1 the marker at offset 4 of t-0, for producer 7, has coordinator epoch 1, though "
            "the one at offset 1 has 2."
        )


class TestTornMarkers:
    name = "torn-markers"

    def test_a_marker_of_any_replica_is_enough(self) -> None:
        assert verdict(self.name, marker(1, 3, 1, role="follower"), completed(2)) is Verdict.VALID

    def test_a_marker_may_be_written_twice(self) -> None:
        twice = marker(1, 1, 1, first=0), marker(2, 1, 2)
        assert verdict(self.name, *twice, completed(3)) is Verdict.VALID

    def test_each_transaction_needs_a_marker_of_its_own(self) -> None:
        events = [marker(1, 1, 1), completed(2), completed(4)]
        assert verdict(self.name, *events) is Verdict.INVALID
        assert verdict(self.name, *events[:2], marker(3, 1, 2), completed(4)) is Verdict.VALID

    def test_a_marker_that_a_follower_copies_late_is_not_the_next_one(self) -> None:
        events = marker(1, 1, 1), completed(2), marker(3, 3, 1, role="follower"), completed(4)
        assert verdict(self.name, *events) is Verdict.INVALID

    def test_a_coordinator_that_was_paused_completes_after_its_successor(self) -> None:
        its_own = marker(1, 1, 1)
        others = marker(3, 1, 3, coordinator_epoch=1), completed(4, coordinator_epoch=1)
        assert verdict(self.name, its_own, *others, completed(5)) is Verdict.VALID

    def test_a_marker_of_another_coordinator_is_none(self) -> None:
        assert (
            verdict(self.name, marker(1, 1, 1, coordinator_epoch=1), completed(2))
            is Verdict.INVALID
        )

    def test_another_producers_marker_is_none(self) -> None:
        assert verdict(self.name, marker(1, 1, 1, producer_id=8), completed(2)) is Verdict.INVALID

    def test_nothing_complete_is_unknown(self) -> None:
        assert verdict(self.name, marker(1, 1, 1)) is Verdict.UNKNOWN


def kept(*events: Said) -> Result:
    return only(KeptMarkers(), history(*events), "markers-kept")


class TestMarkersKept:
    appended = marker(1, 1, 3, first=0)

    def test_a_marker_that_is_there(self) -> None:
        judged = kept(self.appended, stored_log(9, 1, 4, 0), stored_marker(9, 1, 3))
        assert (judged.verdict, judged.checked) == (Verdict.VALID, 1)

    @pytest.mark.parametrize("batch", [0, 2])
    def test_a_marker_that_went_before_its_records(self, batch: int) -> None:
        [item] = kept(self.appended, stored_log(9, 1, 4, batch)).findings
        assert item.sentence == (
            f"The files of broker 1 have a batch of producer 7 at offset {batch} of t-0, but not the marker at offset "
            "3 that ended its transaction."
        )

    def test_a_later_marker_is_another_one(self) -> None:
        later = marker(2, 1, 5, first=4)
        judged = kept(self.appended, later, stored_log(9, 1, 6, 0, 4), stored_marker(9, 1, 5))
        assert (judged.verdict, judged.checked) == (Verdict.INVALID, 2)

    def test_records_that_are_gone_need_no_marker(self) -> None:
        for batches in ((), (4,)):
            assert kept(self.appended, stored_log(9, 1, 5, *batches)).verdict is Verdict.UNKNOWN

    def test_a_marker_that_was_cut_is_none(self) -> None:
        stopped = broker(3, 1, "replica-stopped", step="delete", topic="t", partition=0)
        for cut in (truncate(3, 1, 3), loaded(3, 1, 2), stopped):
            events = self.appended, cut, stored_log(9, 1, 5, 0)
            assert kept(*events).verdict is Verdict.UNKNOWN

    def test_files_that_end_before_the_marker_prove_nothing(self) -> None:
        for log in (stored_log(9, 1, 3, 0), stored_log(9, 2, 4, 0), stored_log(9, 1, 4, 0)[1:]):
            assert kept(self.appended, log).verdict is Verdict.UNKNOWN

    def test_a_marker_without_records_is_no_transaction(self) -> None:
        assert kept(marker(1, 1, 3), stored_log(9, 1, 4, 0)).verdict is Verdict.UNKNOWN


def hanging(*events: Said) -> Result:
    return only(HangingTransactions(), history(*events), "hanging-transaction")


LED = [*settings(), become_leader(1, 1, 0, 0), added(2, 5)]


class TestHanging:
    def test_a_transaction_that_has_its_marker(self) -> None:
        ended = hanging(LED, opened(3), marker(9, 1, 1, first=0), measured(1_000))
        assert (ended.verdict, ended.checked) == (Verdict.VALID, 1)

    def test_a_transaction_that_followers_copy_counts_once(self) -> None:
        copies = [opened(4, node=node, role="follower") for node in (2, 3)]
        ended = hanging(LED, opened(3), *copies, marker(9, 1, 1, first=0), measured(1_000))
        assert (ended.verdict, ended.checked) == (Verdict.VALID, 1)

    def test_a_transaction_that_was_ended_too_late(self) -> None:
        late = hanging(LED, opened(3), marker(900, 2, 1, first=0, role="follower"), measured(1_000))
        assert late.verdict is Verdict.INVALID
        assert late.findings[0].sentence == (
            "A transaction of producer 7 held the last stable offset of t-0 at offset 0: it was open for 897 ms "
            "without a fault before its marker was appended, and it may last 18 ms."
        )

    def test_the_next_transaction_does_not_end_it_in_time(self) -> None:
        """Its marker was never written: the last stable offset stood still until the next transaction had ended."""
        following = added(900, 5), marker(902, 1, 2, first=0)
        assert hanging(LED, opened(3), *following, measured(1_000)).verdict is Verdict.INVALID
        assert hanging(LED, opened(3), added(999, 5), measured(1_000)).verdict is Verdict.INVALID

    def test_the_leader_of_a_topic_that_is_created_again_counts(self) -> None:
        """Its leader epochs begin at 0, below those of the former topic."""
        former = become_leader(1, 1, 7, 0), broker(10, 1, "replica-stopped", step="deleting", **TP)
        again: dict[str, Any] = {"topic_id": "id-again"}
        newest = become_leader(20, 2, 0, 0, **again), added(21, 5), opened(22, node=2, **again)
        run = *settings(), *former, *newest
        assert hanging(*run, measured(1_000)).verdict is Verdict.INVALID
        ended = marker(23, 2, 1, first=0, **again)
        assert hanging(*run, ended, measured(1_000)).verdict is Verdict.VALID

    def test_a_fault_explains_a_late_end(self) -> None:
        about = {"fault": "kill", "fault_id": 1, "targets": ["broker-1"]}
        fault = [
            harness(10, "fault-invoke", **about),
            harness(11, "fault-applied", effect="measured", **about),
            harness(890, "fault-healed", effect="verified", **about),
        ]
        ended = marker(900, 1, 1, first=0)
        assert hanging(LED, opened(3), fault, ended, measured(1_000)).verdict is Verdict.VALID

    @pytest.mark.parametrize(
        ("name", "broker", "expected"),
        [
            ("kill", 1, Verdict.INVALID),
            ("power-cut", 1, Verdict.VALID),
            ("power-cut", 2, Verdict.INVALID),
        ],
    )
    def test_a_coordinator_may_wait_for_a_machine_that_lost_power(
        self, name: str, broker: int, expected: Verdict
    ) -> None:
        """As in `transactions` with all faults, seed 60172: the machine was back, and had not sent a reset."""
        about = {"fault": name, "fault_id": 1, "targets": [f"broker-{broker}"]}
        fault = [
            harness(10, "fault-invoke", **about),
            harness(11, "fault-applied", effect="measured", **about),
            harness(40, "fault-healed", effect="verified", **about),
        ]
        in_time, late = marker(900, 1, 1, first=0), marker(31_000, 1, 1, first=0)
        assert hanging(LED, opened(3), fault, in_time, measured(1_000)).verdict is expected
        assert hanging(LED, opened(3), fault, late, measured(32_000)).verdict is Verdict.INVALID

    def test_the_marker_of_another_transaction_ends_nothing(self) -> None:
        again = opened(700, offset=2), marker(705, 1, 3, first=2)
        cut = truncate(5, 1, 0)
        assert hanging(LED, opened(3), cut, *again, measured(1_000)).verdict is Verdict.VALID
        former = marker(4, 2, 1, first=-1, role="follower")
        ended = marker(900, 1, 1, first=0)
        late = hanging(LED, opened(3), former, ended, measured(1_000))
        assert late.verdict is Verdict.INVALID

    @pytest.mark.parametrize(("node", "expected"), [(1, Verdict.VALID), (2, Verdict.INVALID)])
    def test_a_log_that_is_deleted_takes_its_own_transactions(
        self, node: int, expected: Verdict
    ) -> None:
        deleted = broker(5, node, "replica-stopped", step="deleting", **TP)
        ended = marker(900, 1, 1, first=0)
        assert hanging(LED, opened(3), deleted, ended, measured(1_000)).verdict is expected

    def test_an_open_transaction_that_may_still_end_is_unknown(self) -> None:
        early = hanging(LED, opened(3), measured(12))
        assert early.verdict is Verdict.UNKNOWN
        assert early.findings[0].sentence == (
            "A transaction of producer 7 holds the last stable offset of t-0 at offset 0: it was open for 9 ms without "
            "a fault when the run ended; a transaction may last 18 ms."
        )

    def test_an_overdue_transaction_hangs(self) -> None:
        late = hanging(LED, opened(3), measured(1_000))
        assert late.verdict is Verdict.INVALID
        assert late.findings[0].sentence == (
            "A transaction of producer 7 holds the last stable offset of t-0 at offset 0: it was open for 997 ms "
            "without a fault when the run ended, and it may last 18 ms."
        )

    def test_nothing_is_due_while_a_fault_is_in_force(self) -> None:
        about = {"fault": "kill", "fault_id": 1, "targets": ["broker-1"]}
        fault = [
            harness(4, "fault-invoke", **about),
            harness(5, "fault-applied", effect="measured", **about),
            harness(995, "fault-healed", effect="verified", **about),
        ]
        assert hanging(LED, opened(3), fault, measured(1_000)).verdict is Verdict.UNKNOWN
        assert hanging(LED, opened(3), fault, measured(1_100)).verdict is Verdict.INVALID

    def test_a_time_out_that_nobody_traced_is_unknown(self) -> None:
        untraced = hanging(settings(), become_leader(1, 1, 0, 0), opened(3), measured(1_000))
        assert untraced.verdict is Verdict.UNKNOWN

    def test_a_late_machine_is_unknown(self) -> None:
        end = [*measured(1_000)[:1], harness(1_000, "harness-lag", duration_ms=500)]
        assert hanging(LED, opened(3), end).verdict is Verdict.UNKNOWN

    def test_a_moved_clock_is_unknown(self) -> None:
        about = {"fault": "clock-jump", "fault_id": 1}
        fault = [
            harness(4, "fault-invoke", **about),
            harness(5, "fault-healed", effect="verified", **about),
        ]
        assert hanging(LED, opened(3), fault, measured(1_000)).verdict is Verdict.UNKNOWN

    def test_the_log_of_the_last_leader_counts(self) -> None:
        followed = opened(3), opened(4, node=2, role="follower"), become_leader(6, 2, 1, 1)
        ended = marker(9, 2, 1, first=0)
        assert hanging(LED, followed[0], *followed[1:], ended, measured(1_000)).verdict is (
            Verdict.VALID
        )
        assert hanging(LED, *followed, measured(1_000)).verdict is Verdict.INVALID

    def test_what_was_cut_does_not_count(self) -> None:
        cut = truncate(5, 1, 0)
        assert hanging(LED, opened(3), cut, measured(1_000)).verdict is Verdict.VALID
        marked = marker(4, 1, 1, first=0)
        reopened = hanging(LED, opened(3), marked, truncate(5, 1, 1), measured(1_000))
        assert reopened.verdict is Verdict.INVALID

    @pytest.mark.parametrize(
        ("partition", "expected"),
        [
            ("t-0", Verdict.VALID),
            ("__transaction_state-1", Verdict.VALID),
            ("u-0", Verdict.INVALID),
        ],
    )
    def test_a_lost_marker_is_reported_and_allowed(self, partition: str, expected: Verdict) -> None:
        about = {"fault": "power-cut", "fault_id": 1}
        cut = [
            harness(5, "fault-invoke", detail=f'{{"last_in_isr": ["{partition}"]}}', **about),
            harness(6, "fault-healed", effect="verified", **about),
        ]
        after = loaded(7, 1, 1), become_leader(8, 1, 1, 1)
        lost = hanging(LED, opened(3), marker(4, 1, 1, first=0), cut, *after, measured(1_000))
        assert lost.verdict is expected
        assert lost.findings

    def test_a_loss_after_the_late_end_is_no_excuse(self) -> None:
        about = {"fault": "power-cut", "fault_id": 1}
        cut = [
            harness(950, "fault-invoke", detail='{"last_in_isr": ["t-0"]}', **about),
            harness(951, "fault-healed", effect="verified", **about),
        ]
        late = hanging(LED, opened(3), marker(900, 1, 1, first=0), cut, measured(1_000))
        assert late.verdict is Verdict.INVALID
