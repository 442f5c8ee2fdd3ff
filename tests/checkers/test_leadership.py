"""Leader epochs, one leader per epoch, leaders from the ISR."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nemesis.checkers.breaks.administration import assigned
from nemesis.checkers.breaks.events import (
    TP,
    acknowledged,
    append,
    become_leader,
    broker,
    started,
    state,
    znode,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.leadership import LeaderEpochGrows, LeaderFromIsr, OneLeaderPerEpoch
from nemesis.history.events import Event
from nemesis.history.quorum_events import PROCESS as QUORUM
from tests.checkers.histories import finding, only


def follows(time: int, node: int, epoch: int, **columns: Any) -> Event:
    return broker(time, node, "become-follower", leader_epoch=epoch, **{**TP, **columns})


def assign(zxid: int, replicas: str, *, adding: str = "[]") -> Event:
    """A write of the znode of topic t."""
    data = f'{{"version":3,"partitions":{{"0":{replicas}}},"adding_replicas":{{"0":{adding}}}}}'
    return znode(zxid, 9, "/brokers/topics/t", topic="t", topic_id="id", data=data)


def elected(time: int, zxid: int, leader: int, **columns: Any) -> Event:
    return broker(time, 9, "leader-elected", zxid=zxid, leader=leader, **{**TP, **columns})


class TestLeaderEpochGrows:
    def test_elections_and_isr_changes(self) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 0, [1]), state(3, 9, -1, 1, [1])]
        events += [state(4, 9, 1, 2, [1]), become_leader(5, 1, 0, 0), become_leader(6, 1, 2, 0)]
        result = only(LeaderEpochGrows(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 6)

    def test_a_new_leader_in_the_old_epoch(self) -> None:
        before, after = state(1, 9, 1, 4, [1, 2]), state(2, 9, 2, 4, [1, 2])
        assert only(LeaderEpochGrows(), [before, after]).findings == (
            finding(
                "leader-epoch-grows",
                "t-0",
                "The leader of t-0 changed from broker 1 to broker 2, but leader epoch 4 stayed.",
                before,
                after,
            ),
        )

    def test_an_epoch_that_falls(self) -> None:
        result = only(LeaderEpochGrows(), [state(1, 9, 1, 4, [1, 2]), state(2, 9, 1, 3, [1, 2])])
        assert [item.sentence for item in result.findings] == [
            "The leader epoch of t-0 fell from 4 to 3 in ZooKeeper."
        ]

    def test_a_deleted_topic_starts_anew(self) -> None:
        gone = znode(2, 9, "/brokers/topics/t/partitions/0/state", zk_op="delete", **TP)
        again = state(3, 9, 2, 0, [2], zk_op="create", topic_id="other")
        assert only(LeaderEpochGrows(), [state(1, 9, 1, 4, [1]), gone, again]).verdict == "valid"

    def test_a_replica_that_goes_back(self) -> None:
        newer, older = follows(5, 2, 3), become_leader(6, 2, 2, 0)
        assert only(LeaderEpochGrows(), [newer, older]).findings == (
            finding(
                "leader-epoch-grows",
                "t-0",
                "Broker 2 went back to leader epoch 2 of t-0 after it had adopted epoch 3.",
                newer,
                older,
            ),
        )

    def test_another_process_life_may_be_told_an_older_epoch(self) -> None:
        events = [follows(5, 2, 3), follows(6, 2, 2, incarnation=2)]
        assert only(LeaderEpochGrows(), events).verdict == Verdict.VALID


class TestOneLeaderPerEpoch:
    def test_one_each(self) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [1, 2])]
        events += [become_leader(3, 1, 0, 0), append(4, 1, 0, 0, role="leader"), append(5, 2, 0, 0)]
        events += [become_leader(6, 2, 1, 1), acknowledged(7, 2, 1, 1), become_leader(8, 2, 1, 2)]
        result = only(OneLeaderPerEpoch(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 5)

    @pytest.mark.parametrize(
        "act",
        [become_leader(6, 2, 4, 0), append(6, 2, 4, 0, role="leader"), acknowledged(6, 2, 4, 0)],
    )
    def test_two_in_one_epoch(self, act: Event) -> None:
        first = become_leader(5, 1, 4, 0)
        assert only(OneLeaderPerEpoch(), [first, act]).findings == (
            finding(
                "one-leader-per-epoch",
                "t-0",
                "Brokers 1 and 2 both acted as leader of t-0 in leader epoch 4.",
                first,
                act,
            ),
        )

    def test_a_leader_that_zookeeper_does_not_name(self) -> None:
        named, act = state(1, 9, 1, 4, [1, 2]), become_leader(5, 2, 4, 0)
        assert only(OneLeaderPerEpoch(), [named, act]).findings == (
            finding(
                "one-leader-per-epoch",
                "t-0",
                "Broker 2 acted as leader of t-0 in leader epoch 4, which ZooKeeper gave to broker 1.",
                named,
                act,
            ),
        )

    def test_a_leader_that_the_metadata_log_does_not_name(self) -> None:
        named = msgspec.structs.replace(state(1, 9, 1, 4, [1, 2]), process=QUORUM)
        (violation,) = only(OneLeaderPerEpoch(), [named, become_leader(5, 2, 4, 0)]).findings
        assert violation.sentence == (
            "Broker 2 acted as leader of t-0 in leader epoch 4, which the metadata log gave to broker 1."
        )

    @pytest.mark.parametrize(
        "act",
        [become_leader(6, 1, 4, 0), append(6, 1, 4, 0, role="leader"), acknowledged(6, 1, 4, 0)],
    )
    def test_a_leader_where_zookeeper_names_none(self, act: Event) -> None:
        named = state(1, 9, -1, 4, [1, 2])
        assert only(OneLeaderPerEpoch(), [named, act]).findings == (
            finding(
                "one-leader-per-epoch",
                "t-0",
                "Broker 1 acted as leader of t-0 in leader epoch 4, in which ZooKeeper names no leader.",
                named,
                act,
            ),
        )

    @pytest.mark.parametrize(
        ("epoch", "versions", "verdict"),
        [
            (1, (0, 1), Verdict.INVALID),
            (
                3,
                (0, 1),
                Verdict.UNKNOWN,
            ),  # perhaps in a tail of the log that was still being written
            (1, (0, 2), Verdict.UNKNOWN),  # a write is missing from the log
            (1, (5, 6), Verdict.UNKNOWN),  # the log begins after the topic's creation
        ],
    )
    def test_an_epoch_that_zookeeper_never_named(
        self, epoch: int, versions: tuple[int, int], verdict: Verdict
    ) -> None:
        act = become_leader(6, 1, epoch, 0)
        written = [
            state(1, 9, 1, 0, [1, 2], zk_version=versions[0]),
            state(2, 9, 1, 2, [1], zk_version=versions[1]),
        ]
        assert only(OneLeaderPerEpoch(), [*written, act]).findings == (
            finding(
                "one-leader-per-epoch",
                "t-0",
                f"Broker 1 acted as leader of t-0 in leader epoch {epoch}, which ZooKeeper does not show.",
                act,
                verdict=verdict,
            ),
        )

    def test_another_incarnation_of_the_topic_names_other_leaders(self) -> None:
        events = [state(1, 9, 1, 0, [1], topic_id="old", zk_version=0)]
        events += [znode(2, 9, "/brokers/topics/t/partitions/0/state", zk_op="delete", **TP)]
        events += [state(3, 9, 2, 0, [2], zk_op="create", zk_version=0)]
        acts = [become_leader(4, 1, 0, 0, topic_id="old"), become_leader(5, 2, 0, 0)]
        assert only(OneLeaderPerEpoch(), [*events, *acts]).verdict == Verdict.VALID

    def test_followers_alone_are_unknown(self) -> None:
        assert only(OneLeaderPerEpoch(), [append(5, 2, 0, 0)]).verdict == Verdict.UNKNOWN


def _verdict(*events: Event) -> Verdict:
    return only(LeaderFromIsr(), list(events)).verdict


class TestLeaderFromIsr:
    def test_elections_from_the_isr(self) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [2]), state(3, 9, -1, 2, [2])]
        events += [elected(5, 1, 1, replicas=[1, 2], live=[1, 2], strategy="new", isr=[1, 2])]
        events += [elected(6, 2, 2, replicas=[1, 2], live=[2], strategy="offline", isr=[2])]
        result = only(LeaderFromIsr(), events)
        assert (result.verdict, result.checked) == (Verdict.VALID, 3)

    @pytest.mark.parametrize(
        "data", ['{"elr":[3],"last_known_elr":[]}', '{"elr":[],"last_known_elr":[3]}']
    )
    def test_eligible_leaders_of_a_quorum(self, data: str) -> None:
        """With KRaft a partition without a leader may have an empty ISR, and the eligible broker leads next."""
        settings = started(0, 9, unclean=False)
        events = [state(1, 0, -1, 1, [], data=data), state(2, 0, 3, 2, [3], data='{"elr":[]}')]
        assert only(LeaderFromIsr(), [settings, *events]).verdict == Verdict.VALID
        other = [events[0], state(2, 0, 2, 2, [2], data='{"elr":[]}')]
        assert only(LeaderFromIsr(), [settings, *other]).verdict == Verdict.INVALID
        led = state(1, 0, 3, 1, [], data=data)
        assert only(LeaderFromIsr(), [settings, led]).verdict == Verdict.INVALID

    def test_a_quorums_record_replaces_a_leader_whose_reassignment_it_completes(self) -> None:
        settings, moving = started(0, 9, unclean=False), assigned(1, 1, 2, 3)
        led = state(2, 0, 3, 0, [3, 2], data='{"elr":[]}')
        data = '{"elr":[],"ends_reassignment":true}'
        done, elected_one = assigned(3, 1, 2), state(3, 0, 1, 1, [2, 1], seq=1, data=data)
        assert _verdict(settings, moving, led, done, elected_one) == Verdict.VALID
        assert _verdict(settings, moving, led, elected_one) == Verdict.INVALID
        unfinished = state(3, 0, 1, 1, [2, 1], seq=1, data='{"elr":[],"ends_reassignment":false}')
        assert _verdict(settings, moving, led, done, unfinished) == Verdict.INVALID

    def test_last_known_leaders_do_not_count_while_others_are_eligible(self) -> None:
        settings = started(0, 9, unclean=False)
        before = state(1, 0, -1, 1, [], data='{"elr":[2],"last_known_elr":[3]}')
        result = only(LeaderFromIsr(), [settings, before, state(2, 0, 3, 2, [3])])
        assert result.verdict == Verdict.INVALID

    def test_the_record_without_eligible_replicas_may_elect_the_last_known_leader(self) -> None:
        """Kafka 4.1: the only eligible replica has registered again after an unclean stop."""
        settings = started(0, 9, unclean=False)
        before = state(1, 0, -1, 1, [], data='{"elr":[2],"last_known_elr":[3]}')
        recovering = '{"elr":[],"last_known_elr":[],"leader_recovery_state":1}'
        assert _verdict(settings, before, state(2, 0, 3, 2, [3], data=recovering)) == Verdict.VALID
        other = state(2, 0, 1, 2, [1], data=recovering)
        assert _verdict(settings, before, other) == Verdict.INVALID
        recovered = recovering.replace(":1", ":0")
        silent = state(2, 0, 3, 2, [3], data=recovered)
        assert _verdict(settings, before, silent) == Verdict.INVALID
        eligible_left = recovering.replace('"elr":[]', '"elr":[2]', 1)
        too_early = state(2, 0, 3, 2, [3], data=eligible_left)
        assert _verdict(settings, before, too_early) == Verdict.INVALID

    def test_a_leader_from_outside(self) -> None:
        before, after = state(1, 9, 1, 0, [1, 2]), state(2, 9, 3, 1, [3])
        traced = elected(5, 2, 3, replicas=[1, 2, 3], live=[3], strategy="offline")
        assert only(LeaderFromIsr(), [before, after, traced]).findings == (
            finding(
                "leader-from-isr",
                "t-0",
                "t-0: broker 3 was elected leader though the ISR was [1, 2].",
                before,
                after,
                traced,
            ),
        )

    @pytest.mark.parametrize(
        "unclean",
        [
            [state(2, 9, 3, 1, [3], data='{"leader":3,"leader_recovery_state":1}')],
            [state(2, 9, 3, 1, [3]), elected(5, 2, 3, live=[3], strategy="unclean")],
        ],
    )
    def test_an_unclean_election_needs_permission(self, unclean: list[Event]) -> None:
        events = [state(1, 9, 1, 0, [1]), *unclean]
        no, yes = started(1, 1, unclean=False), started(2, 2, unclean=True)
        assert only(LeaderFromIsr(), [no, yes, *events]).verdict == Verdict.VALID
        assert only(LeaderFromIsr(), [no, *events]).findings == (
            finding(
                "leader-from-isr",
                "t-0",
                "t-0: broker 3 was elected leader though the ISR was [1].",
                *events,
            ),
        )
        assert only(LeaderFromIsr(), events).findings == (
            finding(
                "leader-from-isr",
                "t-0",
                "t-0: broker 3 was elected leader uncleanly, and the history does not contain whether the "
                "configuration permits that.",
                *events,
                verdict=Verdict.UNKNOWN,
            ),
        )

    def test_an_unclean_election_that_took_a_member_needs_none(self) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [2])]
        events += [elected(5, 2, 2, replicas=[1, 2], live=[2], strategy="unclean")]
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID

    def test_a_leader_that_the_controller_knew_to_be_dead(self) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [2])]
        events += [elected(5, 2, 2, replicas=[1, 2], live=[1], strategy="offline")]
        result = only(LeaderFromIsr(), events)
        assert [item.sentence for item in result.findings] == [
            "t-0: broker 2 was elected leader though the controller saw only [1] alive."
        ]

    @pytest.mark.parametrize("strategy", ["remove-from-isr", "no-op"])
    def test_where_nobody_is_elected_even_a_dead_leader_stays(self, strategy: str) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 1, [1])]
        events += [elected(5, 2, 1, replicas=[1, 2], live=[], strategy=strategy)]
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID

    @pytest.mark.parametrize("strategy", ["remove-from-isr", "no-op"])
    def test_where_nobody_is_elected_nobody_else_leads(self, strategy: str) -> None:
        events = [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [1, 2])]
        events += [elected(5, 2, 2, replicas=[1, 2], live=[1, 2], strategy=strategy)]
        (only_finding,) = only(LeaderFromIsr(), events).findings
        assert only_finding.sentence == (
            f"t-0: no leader was elected ({strategy}), but the leader changed from 1 to 2."
        )

    @pytest.mark.parametrize(
        ("written", "sentence"),
        [
            (state(2, 9, 1, 1, []), "t-0: a state with an empty ISR was committed."),
            (
                state(2, 9, 1, 1, [2]),
                "t-0: a state was committed whose leader 1 is not in its ISR [2].",
            ),
        ],
    )
    def test_states_that_are_wrong_in_themselves(self, written: Event, sentence: str) -> None:
        result = only(LeaderFromIsr(), [state(1, 9, 1, 0, [1, 2]), written])
        assert [item.sentence for item in result.findings] == [sentence]

    def test_an_isr_that_a_stranger_joins(self) -> None:
        before, after = state(3, 9, 1, 0, [1, 2]), state(4, 9, 1, 0, [1, 2, 3])
        assert only(LeaderFromIsr(), [assign(2, "[1,2]"), before, after]).findings == (
            finding(
                "leader-from-isr",
                "t-0",
                "t-0: the ISR [1, 2, 3] has brokers that are not replicas of it: [3].",
                before,
                after,
            ),
        )

    def test_a_cancelled_replica_leaves_the_isr_last_where_no_broker_traces(self) -> None:
        events = [
            assign(1, "[1,2]", adding="[3,4]"),
            state(2, 9, 1, 0, [1, 3, 4]),
            assign(3, "[1,2]"),
            state(4, 9, 1, 0, [1, 4]),
            state(5, 9, 1, 0, [1]),
        ]
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID
        traced = started(1, 1, unclean=False)
        assert only(LeaderFromIsr(), [traced, *events]).verdict == Verdict.INVALID
        joins = state(6, 9, 1, 0, [1, 4])
        assert only(LeaderFromIsr(), [*events, joins]).verdict == Verdict.INVALID

    @pytest.mark.parametrize(
        "event",
        [
            assign(3, "[1,2,3]"),
            assign(3, "[1,2]", adding="[3]"),
            znode(3, 9, "/brokers/topics/t", zk_op="delete", topic="t"),
            znode(3, 9, "/brokers/topics/t", topic="t", data="{"),
            znode(3, 9, "/brokers/topics/t", topic="t", data='{"partitions":{"x":1,"0":"1"}}'),
        ],
    )
    def test_the_assignment_at_that_zxid_counts(self, event: Event) -> None:
        events = [assign(1, "[1,2]"), state(2, 9, 1, 0, [1, 2]), event, state(4, 9, 1, 0, [1, 3])]
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID

    @pytest.mark.parametrize(
        ("leader", "isr", "sentence"),
        [
            (3, [3], "t-0: the ISR [3] has brokers that are not replicas of it: [3]."),
            (1, [1, 3], "t-0: the ISR [1, 3] has brokers that are not replicas of it: [3]."),
        ],
    )
    def test_a_first_state_out_of_the_replicas(
        self, leader: int, isr: list[int], sentence: str
    ) -> None:
        events = [state(1, 9, leader, 0, isr)]
        events += [elected(5, 1, leader, replicas=[1, 2], live=[1, 2, 3], strategy="new")]
        assert [item.sentence for item in only(LeaderFromIsr(), events).findings] == [sentence]
