"""Who permits unclean elections, and for how long: the topic, the brokers, an operator. Both sides of each bound."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import (
    TP,
    broker,
    final,
    grant,
    harness,
    high_watermark,
    send,
    started,
    state,
    znode,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.leadership import LeaderFromIsr
from nemesis.checkers.log.client_log import ClientLog
from nemesis.checkers.replication.commitment import NoTruncationBelowHw
from nemesis.checkers.replication.logs import ReplicaLogs
from nemesis.checkers.unclean import SETTING
from nemesis.history.events import Event
from tests.checkers.histories import judge, only

PATH = "/config/topics/t"
FORBID = started(1, 1, unclean=False)
BEFORE, AFTER = 10, 20
"""The zxids of the state that is replaced, and of the unclean election."""


def config(zxid: int, enabled: str | None) -> Event:
    """The topic's settings are written."""
    setting = "" if enabled is None else f'"unclean.leader.election.enable":"{enabled}"'
    return znode(zxid, 9, PATH, data=f'{{"version":1,"config":{{{setting}}}}}')


def configured(*, enabled: bool) -> Event:
    """The harness has configured all brokers."""
    return harness(0, "broker-property", setting=SETTING, count=int(enabled))


def reconfigured(zxid: int, enabled: str) -> Event:
    """The settings of all brokers are written (KIP-226)."""
    data = config(zxid, enabled).data
    return znode(zxid, 9, "/config/brokers/<default>", data=data)


def written(zxid: int, leader: int, isr: str, more: str = "") -> Event:
    """The state of t-0 is written, with its data."""
    data = f'{{"leader":{leader},"isr":{isr},"leader_epoch":{zxid}{more}}}'
    return state(zxid, 9, leader, zxid, [], data=data)


DELETED = znode(
    15, 9, "/brokers/topics/t/partitions/0/state", zk_op="delete", topic="t", partition=0
)


def elected(time: int, *, zxid: int | None = AFTER, node: int = 9) -> Event:
    return broker(
        time, node, "leader-elected", leader=3, leader_epoch=1, live=[3], strategy="unclean", zxid=zxid, **TP
    )  # fmt: skip


def elected_otherwise(time: int, *, zxid: int = AFTER) -> Event:
    """A controller traces the state as a clean election."""
    return broker(
        time, 9, "leader-elected", leader=3, leader_epoch=1, strategy="offline", zxid=zxid, **TP
    )


def asked(time: int, step: str, *, node: int = 9) -> Event:
    return broker(time, node, "election-asked", step=step, **TP)


def election(*more: Event) -> list[Event]:
    """Broker 3 is elected for a partition whose ISR is [1], in controller epoch 1."""
    states = [state(BEFORE, 9, 1, 0, [1]), state(AFTER, 9, 3, 1, [3])]
    return [FORBID, *states, *more]


def verdict(*more: Event) -> Verdict:
    return only(LeaderFromIsr(), election(*more)).verdict


def registered(zxid: int, node: int, zk_op: str) -> Event:
    return znode(zxid, 9, f"/brokers/ids/{node}", zk_op=zk_op, node=node)


class TestTopic:
    def test_its_permission_counts_though_no_broker_gives_one(self) -> None:
        assert verdict(elected(50), config(5, "true")) == Verdict.VALID
        assert verdict(elected(50)) == Verdict.INVALID

    def test_also_when_only_zookeepers_log_tells_of_the_election(self) -> None:
        recovering = state(AFTER, 9, 3, 1, [3], data='{"leader":3,"leader_recovery_state":1}')
        events = [FORBID, state(BEFORE, 9, 1, 0, [1]), recovering]
        assert only(LeaderFromIsr(), events).verdict == Verdict.INVALID
        assert only(LeaderFromIsr(), [*events, config(5, "TRUE ")]).verdict == Verdict.VALID

    def test_it_counts_from_its_writing_on(self) -> None:
        assert verdict(elected(50), config(19, "true")) == Verdict.VALID
        assert verdict(elected(50), config(21, "true")) == Verdict.INVALID

    @pytest.mark.parametrize(
        "end",
        [config, lambda zxid, _: znode(zxid, 9, PATH, zk_op="delete")],
        ids=["set", "deleted"],
    )
    def test_it_counts_until_the_controller_had_certainly_seen_its_end(self, end: object) -> None:
        assert callable(end)
        assert verdict(elected(50), config(5, "true"), end(15, None)) == Verdict.VALID
        assert verdict(elected(50), config(5, "true"), end(9, None)) == Verdict.INVALID

    def test_its_prohibition_comes_before_what_brokers_permit(self) -> None:
        events = election(elected(50), started(2, 2, unclean=True))
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID
        assert only(LeaderFromIsr(), [*events, config(5, "false")]).verdict == Verdict.INVALID

    def test_a_prohibition_convicts_where_no_broker_tells(self) -> None:
        events = election(elected(50))[1:]
        assert only(LeaderFromIsr(), events).verdict == Verdict.UNKNOWN
        assert only(LeaderFromIsr(), [*events, config(5, "false")]).verdict == Verdict.INVALID

    def test_of_another_topic_it_does_not_count(self) -> None:
        other = znode(5, 9, "/config/topics/u", data=config(5, "true").data)
        assert verdict(elected(50), other) == Verdict.INVALID

    @pytest.mark.parametrize("data", ["{", "[]", '{"config":1}'])
    def test_settings_that_cannot_be_read_permit_nothing(self, data: str) -> None:
        assert verdict(elected(50), znode(5, 9, PATH, data=data)) == Verdict.INVALID


class TestWhatTheControllerHadSeen:
    def test_the_end_of_the_last_member_of_the_isr(self) -> None:
        gone = [registered(4, 1, "create"), registered(16, 1, "delete")]
        end = config(15, "false")
        assert verdict(elected(50), config(5, "true"), end) == Verdict.VALID
        assert verdict(elected(50), config(5, "true"), end, *gone) == Verdict.INVALID
        assert verdict(elected(50), config(5, "true"), config(17, "false"), *gone) == Verdict.VALID

    @pytest.mark.parametrize("zxid", [8, 12])
    def test_a_member_whose_log_directory_failed_may_have_been_dead_before_it_went(
        self, zxid: int
    ) -> None:
        """The state without a leader is written after the failure, and the election replaces it."""
        gone = [registered(4, 1, "create"), registered(16, 1, "delete")]
        failed = znode(
            zxid,
            9,
            "/log_dir_event_notification/log_dir_event_0",
            zk_op="create",
            data='{"broker":1}',
        )
        events = [elected(50), config(5, "true"), config(15, "false"), *gone]
        assert verdict(*events) == Verdict.INVALID
        assert verdict(*events, failed) == Verdict.VALID
        registered_again = [registered(9, 1, "delete"), registered(9, 1, "create")]
        of_an_earlier_process = [*registered_again, failed]
        is_over = zxid < 9
        expected = Verdict.INVALID if is_over else Verdict.VALID
        assert verdict(*events, *of_an_earlier_process) == expected

    def test_its_own_term(self) -> None:
        states = [
            state(BEFORE, 9, 1, 0, [1], epoch=1),
            state(AFTER, 9, 3, 1, [3], epoch=2),
        ]
        events = [FORBID, *states, elected(50), config(5, "true"), config(15, "false")]
        assert only(LeaderFromIsr(), [*events, *grant(14, 9, 9, 2)]).verdict == Verdict.VALID
        assert only(LeaderFromIsr(), [*events, *grant(16, 9, 9, 2)]).verdict == Verdict.INVALID


class TestBrokers:
    def test_what_one_is_given_while_it_runs_counts_from_then_on(self) -> None:
        reported = {"unclean_leader_election_enable": True}
        assert (
            verdict(elected(50), broker(40, 2, "broker-reconfigured", **reported)) == Verdict.VALID
        )
        assert (
            verdict(elected(50), broker(60, 2, "broker-reconfigured", **reported))
            == Verdict.INVALID
        )


class TestHarness:
    """What the harness configured counts where brokers do not trace."""

    OUTSIDER = (state(BEFORE, 9, 1, 0, [1]), state(AFTER, 9, 3, 1, [3]))

    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ([], Verdict.UNKNOWN),
            ([configured(enabled=False)], Verdict.INVALID),
            ([configured(enabled=True)], Verdict.VALID),
            ([configured(enabled=False), config(5, "true")], Verdict.VALID),
            ([configured(enabled=True), config(5, "false")], Verdict.INVALID),
            ([configured(enabled=False), reconfigured(19, "true")], Verdict.VALID),
            ([configured(enabled=False), reconfigured(19, "false")], Verdict.INVALID),
            ([configured(enabled=False), reconfigured(21, "true")], Verdict.INVALID),
        ],
    )
    def test_a_leader_from_outside_the_isr(self, more: list[Event], expected: Verdict) -> None:
        assert only(LeaderFromIsr(), [*self.OUTSIDER, *more]).verdict == expected

    def test_a_member_of_the_isr_needs_no_permission(self) -> None:
        member = [state(BEFORE, 9, 1, 0, [1, 3]), state(AFTER, 9, 3, 1, [3])]
        events = [*member, configured(enabled=False)]
        assert only(LeaderFromIsr(), events).verdict == Verdict.VALID

    def test_another_property_permits_nothing(self) -> None:
        other = harness(0, "broker-property", setting="auto.leader.rebalance.enable", count=1)
        assert only(LeaderFromIsr(), [*self.OUTSIDER, other]).verdict == Verdict.UNKNOWN


class TestUntraced:
    """A controller is killed, or loses its session, before ZooKeeper's answer reaches it: nothing is traced."""

    STATES = (
        started(1, 1, unclean=True),
        state(BEFORE, 9, 1, 0, [1], data='{"leader":1,"isr":[1],"leader_epoch":0}'),
        state(AFTER, 9, 3, 1, [3], data='{"leader":3,"isr":[3],"leader_epoch":1}'),
    )
    PERMITTED: tuple[tuple[list[Event], Verdict], ...] = (
        ([], Verdict.VALID),
        ([config(5, "false")], Verdict.INVALID),
        ([elected_otherwise(10, zxid=BEFORE)], Verdict.VALID),
        ([elected_otherwise(10)], Verdict.INVALID),
    )

    @pytest.mark.parametrize(("more", "expected"), PERMITTED)
    def test_the_election_is_judged_by_its_permission(
        self, more: list[Event], expected: Verdict
    ) -> None:
        assert only(LeaderFromIsr(), [*self.STATES, *more]).verdict == expected

    @pytest.mark.parametrize(("more", "expected"), PERMITTED)
    @pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4, 5, 6)])
    def test_so_are_the_losses(
        self, more: list[Event], expected: Verdict, cuts: tuple[int, ...]
    ) -> None:
        mark = high_watermark(4, 1, 0, 5, [1, 2])
        lead = broker(
            11, 3, "become-leader", leader_epoch=1, log_end_offset=2, log_start_offset=0, **TP
        )
        cut = broker(20, 2, "truncate", log_end_offset=4, **TP)
        history = [*self.STATES, mark, *more, lead, cut]
        judged = judge([NoTruncationBelowHw(), ReplicaLogs()], history, cuts)
        for name in ("no-truncation-below-hw", "leader-completeness"):
            assert {item.verdict for item in judged[name].findings} == {expected}, name
        history = [*self.STATES, *more, *send(2, 7, offset=3), *final(20, {})]
        unseen = judge(ClientLog(), history, cuts)["unseen"]
        assert {item.verdict for item in unseen.findings} == {expected}


class TestOperator:
    def test_an_election_that_is_asked_for_is_permitted(self) -> None:
        assert verdict(asked(45, "unclean"), elected(50), asked(55, "answered")) == Verdict.VALID
        assert verdict(asked(45, "unclean"), elected(50)) == Verdict.VALID

    def test_but_none_before_it_was_asked_for_or_after_it_was_answered(self) -> None:
        assert verdict(elected(50), asked(55, "unclean")) == Verdict.INVALID
        assert verdict(asked(40, "unclean"), asked(45, "answered"), elected(50)) == Verdict.INVALID

    def test_nor_one_by_somebody_else_or_of_another_partition(self) -> None:
        assert verdict(asked(45, "unclean", node=8), elected(50)) == Verdict.INVALID
        other = broker(45, 9, "election-asked", step="unclean", topic="t", partition=1)
        assert verdict(other, elected(50)) == Verdict.INVALID


class TestLosses:
    """What an unclean election may have caused is excused where it was permitted."""

    @pytest.mark.parametrize(
        ("permit", "expected"),
        [
            ([], Verdict.INVALID),
            ([config(5, "true")], Verdict.VALID),
            ([config(25, "true")], Verdict.INVALID),
            ([asked(8, "unclean"), asked(12, "answered")], Verdict.VALID),
            ([asked(12, "unclean")], Verdict.INVALID),
        ],
    )
    def test_in_the_brokers_logs(self, permit: list[Event], expected: Verdict) -> None:
        mark = high_watermark(4, 1, 0, 5, [1, 2])
        cut = broker(20, 2, "truncate", log_end_offset=4, **TP)
        lead = broker(
            11, 2, "become-leader", leader_epoch=1, log_end_offset=2, log_start_offset=0, **TP
        )
        events = [FORBID, mark, elected(10), *permit]
        cuts = only(NoTruncationBelowHw(), [*events, cut])
        assert {item.verdict for item in cuts.findings} == {expected}
        missing = only(ReplicaLogs(), [*events, lead], "leader-completeness")
        assert {item.verdict for item in missing.findings} == {expected}

    @pytest.mark.parametrize(
        ("permit", "expected"),
        [([], Verdict.INVALID), ([config(5, "true")], Verdict.VALID), ([config(25, "true")], Verdict.INVALID)],
    )  # fmt: skip
    def test_for_clients(self, permit: list[Event], expected: Verdict) -> None:
        said = {
            "process": "producer-0",
            "seq": 1,
            "op": 1,
            "f": "send",
            "value": 7,
            "acks": -1,
            **TP,
        }
        events = [
            Event(time=2, kind="invoke", **said),
            Event(time=3, kind="ok", offset=3, node=1, **said),
            Event(
                time=20,
                kind="final-read",
                process="final-0",
                seq=1,
                offset=2,
                high_watermark=2,
                **TP,
            ),
        ]
        result = only(ClientLog(), [FORBID, *events, elected(10), *permit], "unseen")
        assert {item.verdict for item in result.findings} == {expected}

    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ([], Verdict.VALID),
            ([config(5, "true")], Verdict.VALID),
            ([config(5, "false")], Verdict.INVALID),
            ([FORBID], Verdict.INVALID),
            ([configured(enabled=False)], Verdict.INVALID),
            ([configured(enabled=True)], Verdict.VALID),
        ],
    )
    def test_of_an_election_that_only_zookeepers_log_shows(
        self, more: list[Event], expected: Verdict
    ) -> None:
        assert self.unseen(written(BEFORE, 1, "[1,2]"), written(AFTER, 3, "[3]"), *more) == expected

    @pytest.mark.parametrize(
        "states",
        [
            [written(BEFORE, 1, "[1,2]"), written(AFTER, 2, "[2]")],
            [written(BEFORE, 1, "[1,2]"), written(AFTER, -1, "[1]"), written(30, 1, "[1]")],
            [written(BEFORE, 1, "[1]"), DELETED, written(AFTER, 3, "[3]")],
            [written(AFTER, 3, "[3]")],
        ],
    )
    def test_but_not_of_a_clean_one(self, states: list[Event]) -> None:
        assert self.unseen(*states) == Verdict.INVALID

    @pytest.mark.parametrize(
        ("eligible", "leader", "expected"),
        [
            ("[1,2]", 3, Verdict.VALID),
            ("[1,3]", 3, Verdict.INVALID),
            ("[]", 3, Verdict.VALID),
        ],
    )
    @pytest.mark.parametrize("isr", ["[]", "[1]"])
    def test_of_a_leader_outside_the_eligible_replicas_of_a_quorum(
        self, isr: str, eligible: str, leader: int, expected: Verdict
    ) -> None:
        """With KRaft the ISR may be empty (KIP-966), and a leader out of the eligible replicas loses nothing."""
        before = written(BEFORE, -1, isr, f',"elr":{eligible}')
        after = written(AFTER, leader, f"[{leader}]", ',"elr":[]')
        permitted = self.unseen(configured(enabled=True), before, after)
        assert permitted == expected
        assert self.unseen(configured(enabled=False), before, after) == Verdict.INVALID

    @pytest.mark.parametrize(("recovery", "expected"), [(0, Verdict.INVALID), (1, Verdict.VALID)])
    def test_of_a_cancel_that_leaves_no_member_of_the_isr(
        self, recovery: int, expected: Verdict
    ) -> None:
        """With KRaft a cancel removes the replicas that it was adding, and may elect a leader uncleanly."""
        more = f',"elr":[],"ends_reassignment":true,"leader_recovery_state":{recovery}'
        states = [written(BEFORE, 1, "[1]", ',"elr":[]'), written(AFTER, 3, "[3]", more)]
        assert self.unseen(configured(enabled=True), *states) == expected
        assert self.unseen(configured(enabled=False), *states) == Verdict.INVALID

    def unseen(self, *events: Event) -> Verdict:
        """The verdict on an acknowledged record that the final reads did not return."""
        result = only(ClientLog(), [*events, *send(2, 7, offset=3), *final(20, {})], "unseen")
        (lost,) = result.findings
        return lost.verdict
