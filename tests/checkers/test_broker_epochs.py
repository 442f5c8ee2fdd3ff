"""What was meant for, or said by, another life of a broker has no effect."""

from __future__ import annotations

from typing import Any

from nemesis.checkers.breaks.events import TP, broker
from nemesis.checkers.broker_epochs import BrokerEpochFenced
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import finding, only

NAME = "broker-epoch-fenced"


def registered(time: int, epoch: int, *, incarnation: int = 1) -> Event:
    return broker(time, 3, "broker-registered", broker_epoch=epoch, incarnation=incarnation)


def handled(time: int, epoch: int, error: str = "NONE", *, incarnation: int = 1) -> Event:
    return broker(
        time,
        3,
        "control-request-handled",
        incarnation=incarnation,
        broker_epoch=epoch,
        api="StopReplica",
        error=error,
    )


def sent(time: int, peer: int, epoch: int) -> Event:
    return broker(time, 1, "control-request-sent", peer=peer, broker_epoch=epoch)


def altered(
    time: int, isr: dict[int, int], *, leader: int = 2, epoch: int = 20, **columns: object
) -> Event:
    """The controller, broker 1, has written the ISR, given as broker → broker epoch, that the leader proposed."""
    about: dict[str, Any] = {"error": "NONE", "zxid": 99, **TP, **columns}
    return broker(
        time,
        1,
        "alter-partition-handled",
        peer=leader,
        broker_epoch=epoch,
        isr=list(isr),
        isr_epochs=list(isr.values()),
        **about,
    )


class TestControlRequests:
    def test_a_broker_that_keeps_to_its_present_life(self) -> None:
        events = [registered(1, 7), handled(2, 7), registered(3, 9, incarnation=2)]
        events += [handled(4, 7, "STALE_BROKER_EPOCH", incarnation=2), handled(5, 9, incarnation=2)]
        result = only(BrokerEpochFenced(), events)
        assert (result.verdict, result.checked, result.findings) == (Verdict.VALID, 3, ())

    def test_a_request_for_the_life_before(self) -> None:
        again, late = registered(3, 9, incarnation=2), handled(4, 7, incarnation=2)
        assert only(BrokerEpochFenced(), [registered(1, 7), again, late]).findings == (
            finding(
                NAME,
                "broker-3",
                "Broker 3 accepted StopReplica for its broker epoch 7, though it registered with 9.",
                again,
                late,
            ),
        )

    def test_a_request_for_the_life_before_that_comes_before_the_registration(self) -> None:
        early, again = handled(2, 7, incarnation=2), registered(3, 9, incarnation=2)
        result = only(BrokerEpochFenced(), [registered(1, 7), early, again])
        assert [item.events for item in result.findings] == [
            finding(NAME, "", "", again, early).events
        ]

    def test_a_request_for_another_life_reaches_one_that_never_registers(self) -> None:
        early = handled(2, 7, incarnation=2)
        assert only(BrokerEpochFenced(), [registered(1, 7), early]).findings == (
            finding(
                NAME,
                "broker-3",
                "Broker 3 accepted StopReplica for its broker epoch 7, which was that of another process.",
                early,
            ),
        )

    def test_the_controller_may_learn_of_a_registration_first(self) -> None:
        events = [registered(1, 7), handled(2, 9), registered(3, 9), handled(4, 9)]
        assert only(BrokerEpochFenced(), events).verdict == Verdict.VALID

    def test_the_session_before_counts_until_the_next_has_registered(self) -> None:
        events = [registered(1, 7), handled(2, 7), registered(3, 9)]
        assert only(BrokerEpochFenced(), events).verdict == Verdict.VALID
        assert only(BrokerEpochFenced(), [*events, handled(4, 7)]).verdict == Verdict.INVALID

    def test_a_sender_that_does_not_know_proves_nothing(self) -> None:
        result = only(BrokerEpochFenced(), [registered(1, 7), handled(2, -1)])
        assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)

    def test_a_request_for_a_newer_registration_is_refused(self) -> None:
        own, refused = registered(1, 7), handled(2, 9, "STALE_BROKER_EPOCH")
        assert only(BrokerEpochFenced(), [own, refused, registered(3, 9)]).findings == (
            finding(
                NAME,
                "broker-3",
                "Broker 3 refused StopReplica for its broker epoch 9 as stale, though the newest one with which it had "
                "registered was 7.",
                own,
                refused,
            ),
        )

    def test_a_request_for_the_present_registration_is_refused(self) -> None:
        events = [registered(1, 7), registered(2, 9), handled(3, 9, "STALE_BROKER_EPOCH")]
        assert only(BrokerEpochFenced(), events).verdict == Verdict.INVALID

    def test_what_is_refused_before_the_first_registration_was_older(self) -> None:
        early, again = (
            handled(2, 7, "STALE_BROKER_EPOCH", incarnation=2),
            registered(3, 9, incarnation=2),
        )
        assert only(BrokerEpochFenced(), [registered(1, 7), early, again]).verdict == Verdict.VALID
        never = only(BrokerEpochFenced(), [registered(1, 7), early])
        assert (never.verdict, never.checked) == (Verdict.UNKNOWN, 0)

    def test_a_deposed_controller_is_refused_for_what_it_is(self) -> None:
        events = [registered(1, 7), handled(2, 9, "STALE_CONTROLLER_EPOCH"), handled(3, 7)]
        result = only(BrokerEpochFenced(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 1)


class TestAlterPartition:
    def test_members_as_the_controller_knows_them(self) -> None:
        events = [sent(1, 2, 20), sent(2, 3, 30), altered(3, {2: 20, 3: 30})]
        result = only(BrokerEpochFenced(), events)
        assert (result.verdict, result.checked, result.findings) == (Verdict.VALID, 1, ())

    def test_a_member_that_has_registered_anew(self) -> None:
        newer, written = sent(2, 3, 31), altered(3, {2: 20, 3: 30})
        assert only(BrokerEpochFenced(), [sent(1, 3, 30), newer, written]).findings == (
            finding(
                NAME,
                "t-0",
                "Broker 1 committed ISR [2, 3] of t-0 with broker 3 as it was under broker epoch 30, though it knew "
                "that it had registered with 31.",
                newer,
                written,
            ),
        )

    def test_a_leader_that_has_registered_anew(self) -> None:
        newer, written = sent(1, 2, 21), altered(3, {3: 30})
        assert only(BrokerEpochFenced(), [newer, written]).findings == (
            finding(
                NAME,
                "t-0",
                "Broker 1 committed ISR [3] of t-0 for broker 2 with broker epoch 20, though it knew that it had "
                "registered with 21.",
                newer,
                written,
            ),
        )

    def test_what_was_refused_or_changed_nothing_is_no_commit(self) -> None:
        stale = {2: 20, 3: 30}
        events = [sent(1, 3, 31), altered(2, stale, error="INELIGIBLE_REPLICA", zxid=None)]
        result = only(BrokerEpochFenced(), [*events, altered(3, stale, zxid=None)])
        assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)

    def test_a_registration_of_which_the_controller_does_not_know_yet_fences_nothing(self) -> None:
        events = [sent(1, 3, 30), registered(2, 31), altered(3, {2: 20, 3: 30}), sent(4, 3, 31)]
        assert only(BrokerEpochFenced(), events).verdict == Verdict.VALID

    def test_members_of_unknown_epochs_pass(self) -> None:
        assert only(BrokerEpochFenced(), [sent(1, 3, 31), altered(2, {2: -1, 3: -1})]).verdict == (
            Verdict.VALID
        )
