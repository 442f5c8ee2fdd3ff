"""A vacant office is filled in time by a broker that can; a fault that keeps the brokers from ZooKeeper explains it."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers.breaks.events import broker, grant, history, started, znode
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.checkers.breaks.vacancies import BEGUN, END, elected, gone, joined, registered, session
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.vacancies import Vacancies
from nemesis.history.events import Event
from tests.checkers.histories import only

BOUND_MS = 4
EXPIRED = session(2, 1, "expired", 10)
PUNCTUAL = measured(30)


def judge(*parts: Event | list[Event], punctual: list[Event] = PUNCTUAL) -> Result:
    return only(Vacancies(), history(*BEGUN, gone(3, 10), *parts, punctual, END))


def alive(time: int, node: int) -> Event:
    """Return an event that shows that the broker lived."""
    return broker(time, node, "control-request-handled", api="UpdateMetadata", error="NONE")


def won(time: int, node: int = 2, number: int = 20) -> list[Event]:
    return [*grant(4, number, node, 2), elected(time, node, 4, number)]


def killed(start: int, stop: int, **columns: Any) -> list[Event]:
    return fault(start, stop, **{"fault": "kill", "targets": ["broker-1"], **columns})


def restarts(time: int) -> list[Event]:
    """Return broker 1 in its next life, which is elected; broker 2 still lives."""
    return [
        started(time, 1, unclean=False),
        session(time + 1, 1, "connected", 11),
        *grant(4, 11, 1, 2),
        alive(time + 2, 2),
    ]


@pytest.mark.parametrize(("time", "is_late"), [(2 + BOUND_MS, False), (3 + BOUND_MS, True)])
def test_the_bound_counts_from_when_the_znode_was_certainly_gone(time: int, is_late: bool) -> None:
    result = judge(EXPIRED, won(time))
    assert (result.verdict is Verdict.INVALID) is is_late
    assert (result.checked, result.numbers["bound_ms"]) == (2, BOUND_MS)


PAUSED: dict[str, Any] = {"fault": "pause-zookeeper", "targets": ["zookeeper-1", "zookeeper-2"]}


@pytest.mark.parametrize(("time", "is_late"), [(2 + 2 * BOUND_MS, False), (3 + 2 * BOUND_MS, True)])
def test_a_deposed_leader_of_zookeeper_may_not_have_ended_the_session(
    time: int, is_late: bool
) -> None:
    result = judge(*fault(1, 2, **PAUSED), EXPIRED, won(time))
    assert (result.verdict is Verdict.INVALID) is is_late


def test_a_fault_of_zookeeper_that_is_long_over_explains_nothing() -> None:
    expired = session(12, 1, "expired", 10)
    result = judge(*fault(1, 2, **PAUSED), expired, won(13 + BOUND_MS))
    assert result.verdict is Verdict.INVALID


def test_a_finding_names_the_broker_that_could_have_been_elected() -> None:
    (finding,) = judge(EXPIRED, won(20)).findings
    assert finding.sentence == (
        "No broker created /controller for 18 ms after the znode of broker 1 was gone, in which broker-2 was "
        "registered and connected to ZooKeeper and no fault prevented it; the configuration allows at most 4 ms."
    )
    assert [event["kind"] for event in finding.events] == ["broker-registered", "znode", "znode"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*won(20)], id="the-deletion-left-no-trace"),
        pytest.param([EXPIRED, *grant(4, 20, 2, 2)], id="the-creation-left-no-trace"),
        pytest.param(
            [EXPIRED, session(3, 2, "suspended", 20), session(18, 2, "connected", 20), *won(20)],
            id="no-broker-was-connected",
        ),
        pytest.param(
            [
                *(EXPIRED, session(3, 2, "expired", 20), session(4, 2, "connected", 21)),
                *(registered(18, 2, 3, 21), *won(20, number=21)),
            ],
            id="no-broker-was-registered",
        ),
        pytest.param(
            [EXPIRED, *fault(3, 18), *won(20)], id="the-only-broker-that-could-was-paused"
        ),
        pytest.param(
            [EXPIRED, *fault(3, 18, fault="partition", targets=["broker-1"]), *won(20)],
            id="a-partition-explains-everything",
        ),
        pytest.param(
            [EXPIRED, *fault(3, 9, fault="slow-zookeeper", effect="none"), *won(20)],
            id="a-fault-without-a-verified-end",
        ),
        pytest.param(
            [EXPIRED, started(19, 2, unclean=False), *won(20, 3, 30)], id="the-other-broker-died"
        ),
    ],
)
def test_what_a_correct_cluster_does(events: list[Event]) -> None:
    result = judge(*events)
    assert (result.verdict, result.findings) == (Verdict.VALID, ())


@pytest.mark.parametrize(
    "kind", ["stall-follower", "delay-control", "clock-skew", "stray-requests"]
)
def test_a_fault_that_keeps_no_broker_from_zookeeper_explains_nothing(kind: str) -> None:
    assert judge(EXPIRED, fault(3, 18, fault=kind), won(20)).verdict is Verdict.INVALID


class TestKilledController:
    def test_the_others_elect_when_its_session_has_expired(self) -> None:
        assert judge(killed(2, 19), won(2 + 2 * BOUND_MS)).verdict is Verdict.VALID
        assert judge(killed(2, 19), won(3 + 2 * BOUND_MS)).verdict is Verdict.INVALID

    def test_only_its_next_life_is_elected(self) -> None:
        result = judge(killed(2, 19), restarts(19))
        assert result.verdict is Verdict.INVALID
        assert result.numbers["longest_wait_ms"] == 20 - 2 - BOUND_MS

    def test_a_paused_controller_is_as_silent(self) -> None:
        assert judge(killed(2, 19, fault="pause"), won(20)).verdict is Verdict.INVALID

    @pytest.mark.parametrize(
        "events",
        [
            pytest.param([*killed(2, 5), *restarts(5)], id="it-starts-before-its-session-expires"),
            pytest.param(
                [*killed(2, 19, targets=["broker-3"]), *restarts(19)], id="another-was-killed"
            ),
            pytest.param(
                [
                    *killed(2, 19),
                    *fault(3, 4, number=1, fault="zookeeper-kill", targets=["zookeeper-1"]),
                    *won(9),
                ],
                id="zookeeper-was-struck-meanwhile",
            ),
        ],
    )
    def test_when_the_session_expired_may_be_unknown(self, events: list[Event]) -> None:
        assert judge(*events).verdict is Verdict.VALID

    def test_a_session_that_its_client_closed_did_not_expire(self) -> None:
        closed = gone(3, 10, reason="closed")
        parts = (*BEGUN, closed, killed(2, 19), restarts(19), PUNCTUAL, END)
        assert only(Vacancies(), history(*parts)).verdict is Verdict.VALID


def test_a_broker_that_was_controller_before_can_be_elected() -> None:
    """It has resigned, and registered in its next session."""
    back = [EXPIRED, session(3, 1, "connected", 11), registered(4, 1, 4, 11)]
    taken = [*grant(5, 20, 2, 2), elected(4, 2, 5, 20), *gone(6, 20)]
    again = [*killed(5, 20, targets=["broker-2"]), *joined(21, 3, 30), *grant(7, 30, 3, 3)]
    result = judge(*back, *taken, *again, alive(22, 1))
    (finding,) = result.findings
    assert "in which broker-1 was registered" in finding.sentence


def test_a_vacancy_at_the_end_is_left_to_convergence() -> None:
    assert judge(EXPIRED, alive(29, 2)).verdict is Verdict.VALID


def test_brokers_that_are_stopped_at_the_end_elect_no_controller() -> None:
    result = judge(session(29, 1, "expired", 10), won(60), punctual=measured(70))
    assert (result.verdict, result.numbers["longest_wait_ms"]) == (Verdict.VALID, 1.0)


def test_a_slow_machine_is_no_vacant_office() -> None:
    assert judge(EXPIRED, won(150), punctual=measured(151)).verdict is Verdict.INVALID
    late = (*BEGUN, gone(3, 10), EXPIRED, won(150))
    assert only(Vacancies(), history(*late, measured(151, load=145))).verdict is Verdict.UNKNOWN
    assert only(Vacancies(), history(*late, measured(151, lag=101))).verdict is Verdict.UNKNOWN
    near = (*BEGUN, gone(3, 10), EXPIRED, won(50), measured(51, load=48))
    assert only(Vacancies(), history(*near)).verdict is Verdict.VALID


def test_an_election_that_the_log_of_zookeeper_lacks_ends_a_vacancy() -> None:
    taken = [*grant(6, 20, 2, 3), elected(25, 2, 6, 20, epoch=3)]
    assert judge(EXPIRED, taken).verdict is Verdict.INVALID
    lacking = elected(3, 2, 4, 20)
    assert judge(EXPIRED, lacking, taken).verdict is Verdict.VALID


def test_without_an_election_nothing_is_decided() -> None:
    result = only(Vacancies(), history(znode(1, 10, "/brokers/ids/1", zk_op="create", node=1)))
    assert (result.verdict, result.checked) == (Verdict.UNKNOWN, 0)
