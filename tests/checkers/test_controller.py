"""One controller per epoch; stale ones are fenced."""

from __future__ import annotations

from nemesis.checkers.breaks.events import broker, grant, state, znode
from nemesis.checkers.controller import (
    ControllerEpochGrows,
    SingleController,
    StaleControllerFenced,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import finding, only

CREATED = znode(1, 9, "/controller_epoch", zk_op="create", controller_epoch=0)


def sent(time: int, node: int, epoch: int, **columns: int) -> Event:
    return broker(time, node, "control-request-sent", controller_epoch=epoch, peer=3, **columns)


def handled(time: int, node: int, epoch: int, error: str = "NONE", incarnation: int = 1) -> Event:
    return broker(
        time,
        node,
        "control-request-handled",
        incarnation=incarnation,
        controller_epoch=epoch,
        api="LeaderAndIsr",
        error=error,
    )


class TestSingleController:
    def test_owners_that_act_in_their_own_epochs(self) -> None:
        events = [CREATED, *grant(2, 10, 1, 1), *grant(5, 20, 2, 2)]
        # Broker 1 sends on after it was deposed: a zombie, but the epoch is its own.
        events += [sent(1, 1, 1), sent(2, 2, 2), sent(3, 1, 1)]
        result = only(SingleController(), events)
        assert (result.verdict, result.checked, result.findings) == (Verdict.VALID, 5, ())

    def test_a_broker_that_acts_in_anothers_epoch(self) -> None:
        granted, act = grant(2, 10, 1, 1), sent(7, 2, 1)
        result = only(SingleController(), [CREATED, *granted, sent(6, 1, 1), act])
        assert result.findings == (
            finding(
                "single-controller",
                "controller epoch 1",
                "Broker 2 acted in controller epoch 1, which was won by broker 1.",
                granted[1],
                act,
            ),
        )

    def test_an_epoch_granted_twice(self) -> None:
        first, second = grant(2, 10, 1, 1), grant(3, 20, 2, 1)
        result = only(SingleController(), [*first, *second])
        assert result.findings == (
            finding(
                "single-controller",
                "controller epoch 1",
                "Controller epoch 1 was won twice: to broker 1 and to broker 2.",
                first[1],
                second[1],
            ),
        )

    def test_two_brokers_in_one_epoch_without_any_word_from_zookeeper(self) -> None:
        first, other = sent(6, 1, 4), sent(7, 2, 4)
        result = only(SingleController(), [first, other])
        assert [item.sentence for item in result.findings] == [
            "Brokers 1 and 2 both acted as controller in epoch 4."
        ]

    def test_two_lives_of_a_broker_in_one_epoch(self) -> None:
        result = only(
            SingleController(),
            [*grant(2, 10, 1, 1), sent(6, 1, 1), sent(7, 1, 1, incarnation=2)],
        )
        assert [item.sentence for item in result.findings] == [
            "Two processes of broker 1 acted as controller in epoch 1."
        ]

    def test_an_epoch_that_was_never_granted(self) -> None:
        result = only(SingleController(), [*grant(2, 10, 1, 2), sent(6, 1, 1)])
        assert result.verdict == Verdict.INVALID
        assert "does not show who won it" in result.findings[0].sentence

    def test_an_election_beyond_the_end_of_zookeepers_log_is_unknown(self) -> None:
        assert only(SingleController(), [*grant(2, 10, 1, 1), sent(6, 2, 2)]).verdict == "unknown"

    def test_a_leader_written_in_anothers_epoch(self) -> None:
        events = [*grant(2, 10, 1, 1), *grant(3, 20, 2, 2), state(4, 10, 1, 0, [1], epoch=2)]
        result = only(SingleController(), events)
        assert [item.sentence for item in result.findings] == [
            "Broker 1 acted in controller epoch 2, which was won by broker 2."
        ]

    def test_nothing_seen_is_unknown(self) -> None:
        assert only(SingleController(), [CREATED]).verdict == Verdict.UNKNOWN


class TestControllerEpochGrows:
    def test_each_election_raises_it_by_one(self) -> None:
        # Part of every fenced write is a check of the znode, which changes nothing.
        check = znode(4, 10, "/controller_epoch", zk_op="check", zk_version=1)
        result = only(
            ControllerEpochGrows(), [CREATED, *grant(2, 10, 1, 1), check, *grant(9, 20, 2, 2)]
        )
        assert (result.verdict, result.checked) == (Verdict.VALID, 2)

    def test_a_leap(self) -> None:
        item, three = grant(2, 10, 1, 1), grant(9, 20, 2, 3)
        assert only(ControllerEpochGrows(), [CREATED, *item, *three]).findings == (
            finding(
                "controller-epoch-grows",
                "/controller_epoch",
                "The controller epoch went from 1 to 3 instead of 2.",
                item[1],
                three[1],
            ),
        )

    def test_a_reset(self) -> None:
        gone = znode(5, 10, "/controller_epoch", zk_op="delete")
        again = znode(6, 10, "/controller_epoch", zk_op="create", controller_epoch=0)
        result = only(ControllerEpochGrows(), [CREATED, *grant(2, 10, 1, 1), gone, again])
        assert [item.sentence for item in result.findings] == [
            "The controller epoch was deleted.",
            "The controller epoch went from 1 to 0 instead of 2.",
        ]

    def test_no_election_is_unknown(self) -> None:
        assert only(ControllerEpochGrows(), [CREATED]).verdict == Verdict.UNKNOWN


class TestStaleControllerFenced:
    def test_a_refused_request_and_a_restarted_broker_are_fine(self) -> None:
        events = [handled(1, 3, 1), handled(2, 3, 2), handled(3, 3, 1, "STALE_CONTROLLER_EPOCH")]
        # The new process has forgotten the epoch: nothing holds it to what the old one knew.
        events += [handled(4, 3, 1, incarnation=2)]
        result = only(StaleControllerFenced(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 3)

    def test_a_request_of_an_older_epoch_is_accepted(self) -> None:
        newer, older = handled(5, 3, 2), handled(6, 3, 1)
        assert only(StaleControllerFenced(), [handled(1, 3, 1), newer, older]).findings == (
            finding(
                "stale-controller-fenced",
                "broker-3",
                "Broker 3 accepted LeaderAndIsr of controller epoch 1 after it had accepted epoch 2.",
                newer,
                older,
            ),
        )

    def test_a_leader_changed_by_a_deposed_controller(self) -> None:
        first, second = grant(2, 10, 1, 1), grant(4, 20, 2, 2)
        written = state(5, 10, 3, 1, [3])
        result = only(
            StaleControllerFenced(), [*first, state(3, 10, 1, 0, [1, 3]), *second, written]
        )
        assert result.findings == (
            finding(
                "stale-controller-fenced",
                "t-0",
                "Broker 1 changed the leader of t-0 to 3 (leader epoch 1) while broker 2 owned the current controller "
                "epoch 2.",
                second[1],
                written,
            ),
        )

    def test_a_leader_may_write_its_own_isr(self) -> None:
        register = znode(1, 30, "/brokers/ids/3", zk_op="create", node=3)
        events = [register, *grant(2, 10, 1, 1), state(3, 10, 3, 0, [1, 3])]
        result = only(StaleControllerFenced(), [*events, state(4, 30, 3, 0, [3])])
        assert (result.verdict, result.checked) == (Verdict.VALID, 2)

    def test_a_leader_may_write_its_isr_in_a_session_in_which_it_has_not_registered_yet(
        self,
    ) -> None:
        connected = broker(4, 3, "session-state", session=30, session_state="connected")
        created = state(3, 10, 3, 0, [1, 3])
        events = [*grant(2, 10, 1, 1), created, connected, state(4, 30, 3, 0, [3])]
        assert only(StaleControllerFenced(), events).verdict == Verdict.VALID

    def test_an_isr_changed_by_a_deposed_controller(self) -> None:
        first, second = grant(2, 10, 1, 1), grant(4, 20, 2, 2)
        written = state(5, 10, 3, 0, [3])
        events = [*first, state(3, 10, 3, 0, [1, 3]), *second, written]
        assert only(StaleControllerFenced(), events).findings == (
            finding(
                "stale-controller-fenced",
                "t-0",
                "Broker 1 changed the ISR of t-0, which broker 3 leads, while broker 2 owned the current controller "
                "epoch 2.",
                second[1],
                written,
            ),
        )

    def test_an_isr_changed_by_nobody_known_is_unknown(self) -> None:
        events = [*grant(2, 10, 1, 1), state(3, 10, 3, 0, [1, 3]), state(4, 30, 3, 0, [3])]
        result = only(StaleControllerFenced(), events)
        assert result.verdict == Verdict.UNKNOWN
        assert result.findings[0].sentence == (
            "Session 30 changed the ISR of t-0, which broker 3 leads, while broker 1 owned the current controller "
            "epoch 1."
        )

    def test_a_controller_changes_any_isr(self) -> None:
        events = [*grant(2, 10, 1, 1), state(3, 10, 3, 0, [1, 3]), state(4, 10, 3, 0, [3])]
        assert only(StaleControllerFenced(), events).verdict == Verdict.VALID

    def test_a_log_that_begins_after_the_election_is_unknown(self) -> None:
        assert only(StaleControllerFenced(), [state(3, 10, 1, 0, [1])]).verdict == Verdict.UNKNOWN
