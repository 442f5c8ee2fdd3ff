"""A fault of a client explains what that client measured, and nothing that the cluster did."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import harness, history
from nemesis.checkers.breaks.groups import request
from nemesis.checkers.breaks.late_recovery import configured as recovery_settings
from nemesis.checkers.breaks.late_recovery import fault, measured, sent
from nemesis.checkers.breaks.rebalances import ALONE, RETURNED, SILENT, UNANSWERED, joining
from nemesis.checkers.breaks.rebalances import configured as rebalance_settings
from nemesis.checkers.framework.model import Result
from nemesis.checkers.liveness import attribution, unexplained
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.checkers.liveness.late_recovery import LateRecovery
from nemesis.history.events import Event
from nemesis.history.vocabulary.faults import CLIENT_FAULTS
from tests.checkers.histories import only


def client_fault(
    start: int, stop: int, process: str = "member-a", *, kind: str = "pause-client"
) -> list[Event]:
    return fault(start, stop, fault=kind, targets=[process], number=9)


def rebalances(*events: list[Event]) -> Result:
    parts = history(rebalance_settings(), *events, measured(5000))
    return only(CHECKERS["rebalances-end"].check(), parts, "rebalances-end")


def recovery(*events: list[Event]) -> Result:
    end = harness(901, "phase", phase="final-reads")
    return only(LateRecovery(), history(recovery_settings(), *events, measured(900), end))


def rows(*events: list[Event]) -> list[tuple[int, Event]]:
    return list(enumerate(history(*events)))


@pytest.mark.parametrize("kind", sorted(CLIENT_FAULTS))
def test_a_client_fault_is_no_fault_of_the_cluster(kind: str) -> None:
    struck = rows(client_fault(10, 20, kind=kind), fault(40, 50))
    assert [force.fault for force in attribution.in_force(struck)] == ["pause"]
    assert len(unexplained.explained(struck)) == 1


def test_a_client_is_struck_under_all_its_names_from_beginning_to_end() -> None:
    struck = StruckClients(rows(client_fault(10, 20), fault(40, 50)))
    ms = 1_000_000
    assert struck.is_struck("member-a", 0, 10 * ms)
    assert struck.is_struck("member-a.7", 20 * ms, 99 * ms)
    assert not struck.is_struck("member-a", 0, 10 * ms - 1)
    assert not struck.is_struck("member-a", 20 * ms + 1, 99 * ms)
    assert not struck.is_struck("member-b", 0, 99 * ms)
    assert not struck.is_struck("broker-2", 0, 99 * ms)
    assert struck.last_end("member-a", 15 * ms) == 20 * ms
    assert struck.last_end("member-a", 5 * ms) == 0


@pytest.mark.parametrize(
    ("process", "span", "is_late"),
    [
        ("member-a", (50, 400), False),
        ("member-a", (700, 760), False),
        ("member-b", (0, 800), True),
        ("member-a", (702, 760), True),
    ],
)
def test_only_the_paused_process_itself_waits_longer_for_its_join(
    process: str, span: tuple[int, int], is_late: bool
) -> None:
    join = joining(1, 700, **UNANSWERED)
    assert bool(rebalances(client_fault(*span, process), join).findings) == is_late


@pytest.mark.parametrize("events", [SILENT, RETURNED], ids=["silent", "returned"])
@pytest.mark.parametrize("kind", sorted(CLIENT_FAULTS))
def test_the_session_of_a_struck_member_has_to_end_while_the_fault_lasts(
    events: list[Event], kind: str
) -> None:
    assert rebalances(client_fault(2, 4000, kind=kind), events).findings
    assert not rebalances(fault(2, 4000), events).findings


def test_within_its_session_a_struck_member_may_keep_the_generation() -> None:
    beat = request(450, "heartbeat", 1, 1, member="b", taking=0)
    assert not rebalances(client_fault(2, 4000), SILENT[:3], beat).findings


def test_a_member_alone_is_not_late_before_the_bound_has_passed_after_its_pause() -> None:
    assert not rebalances(client_fault(500, 600), ALONE).findings
    assert rebalances(client_fault(0, 0), ALONE).findings


def test_what_a_struck_producer_says_is_not_a_late_recovery_until_the_bound_has_passed() -> None:
    begin, failures = [sent(0, "NONE"), *fault(1, 5)], [sent(28), sent(29)]
    verdicts = {
        process: bool(recovery(begin, client_fault(10, 20, process), failures).findings)
        for process in ("producer-0", "producer-1")
    }
    assert verdicts == {"producer-0": False, "producer-1": True}
    later = [sent(43), sent(44)]
    assert recovery(begin, client_fault(10, 20, "producer-0"), later).findings
