"""Preferred replicas lead again in time: what a correct controller does is not held against it."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import broker, elected, grant, harness, history, state, znode
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.leader_balance import (
    BEGUN,
    WAITS,
    assigned,
    balanced,
    end,
    led_by,
    registered,
)
from nemesis.checkers.breaks.notifications import finished
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.leader_balance import LeaderBalance
from nemesis.history.events import Event
from tests.checkers.histories import only

FIRST_LOOK_MS = 5_005
"""5 s after the failover, and the time for which a session may be silent."""
OTHER_LOOK_MS = 1_004
ENDED = (measured(6_000), end(6_000))
DELETION = "/admin/delete_topics/other"


def judged(*parts: Event | list[Event]) -> Result:
    return only(LeaderBalance(), history(*parts))


def test_a_partition_waits_for_its_preferred_leader_for_too_long() -> None:
    result = judged(*BEGUN, WAITS, *ENDED)
    (finding,) = result.findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "t-0")
    assert finding.sentence == (
        "Broker 2 led t-0 for 5,998 ms without an active fault, and controller 1 did not elect broker 1, which the "
        "partition prefers: it was in the ISR and led 0 of the 1 partitions that prefer it. The configuration allows "
        "at most 5,003 ms."
    )
    assert result.numbers == {"longest_wait_ms": 5_998.0}


@pytest.mark.parametrize(("ended", "is_late"), [(FIRST_LOOK_MS, False), (FIRST_LOOK_MS + 1, True)])
def test_a_new_controller_looks_5_s_after_its_failover(ended: int, is_late: bool) -> None:
    result = judged(*BEGUN, WAITS, measured(ended), end(ended))
    assert (result.verdict is Verdict.INVALID) is is_late


@pytest.mark.parametrize(("waited", "is_late"), [(OTHER_LOOK_MS, False), (OTHER_LOOK_MS + 1, True)])
def test_it_looks_again_at_every_interval(waited: int, is_late: bool) -> None:
    back = led_by(7_000, 6, 2, [1, 2], 1)
    over = 7_000 + waited
    result = judged(*BEGUN, led_by(2, 5, 2, [2]), back, measured(over), end(over))
    assert (result.verdict is Verdict.INVALID) is is_late


def test_a_wait_that_an_election_ends_lasts_to_its_attempt() -> None:
    in_time = led_by(FIRST_LOOK_MS, 6, 1, [1, 2], 2)
    assert judged(*BEGUN, WAITS, in_time, *ENDED).verdict is Verdict.VALID
    late = led_by(FIRST_LOOK_MS + 1, 6, 1, [1, 2], 2)
    assert judged(*BEGUN, WAITS, late, *ENDED).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(led_by(2, 5, 2, [2]), id="not-in-the-isr"),
        pytest.param(led_by(2, 5, 1, [1, 2]), id="it-leads"),
        pytest.param(led_by(2, 5, -1, [1, 2]), id="no-leader"),
        pytest.param([*WAITS, registered(6, 1, "delete")], id="dead"),
        pytest.param([*WAITS, znode(6, 10, DELETION, zk_op="create")], id="a-deletion"),
        pytest.param(
            [*WAITS, znode(6, 10, "/admin/reassign_partitions", zk_op="create")],
            id="a-reassignment",
        ),
        pytest.param(
            [
                *WAITS,
                assigned(
                    6, '{"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]}}', zk_op="setData"
                ),
            ],
            id="a-move",
        ),
        pytest.param(
            [*WAITS, assigned(6, '{"partitions":{"0":[1,2],"1":[2]}}', zk_op="setData")],
            id="a-partition-without-a-state",
        ),
        pytest.param(
            [*WAITS, assigned(6, '{"partitions":{"0":[2,1]}}', zk_op="setData")],
            id="another-preference",
        ),
        pytest.param([*WAITS, *grant(6, 20, 2, 2)], id="deposed"),
        pytest.param([*WAITS, znode(6, 10, "/controller", zk_op="delete")], id="out-of-office"),
        pytest.param(
            [*WAITS, broker(5_000, 1, "controller-resigned", controller_epoch=1, reason="lost")],
            id="resigned",
        ),
        pytest.param([*WAITS, *fault(100, 5_999)], id="a-fault"),
        pytest.param([*WAITS, *fault(5, 7, effect="none")], id="an-end-not-verified"),
        pytest.param([*WAITS, assigned(6, "", zk_op="delete")], id="deleted"),
    ],
)
def test_a_correct_controller(events: list[Event]) -> None:
    assert judged(*BEGUN, events, *ENDED).verdict is Verdict.VALID


def test_a_member_that_the_leader_itself_let_join_counts_from_the_next_failover_on() -> None:
    joined = (*BEGUN, led_by(2, 5, 2, [2]), state(6, 20, 2, 1, [1, 2]), elected(3, 7, 2, [2]))
    assert judged(*joined, *ENDED).verdict is Verdict.VALID
    again = (znode(8, 10, "/controller", zk_op="delete"), grant(9, 10, 1, 2), finished(4, 2))
    known = elected(4, 9, 2, [1, 2])
    assert judged(*joined, *again, known, *ENDED).verdict is Verdict.INVALID


def of_two(data: str, *, percentage: int) -> Result:
    """Judge t-0, which waits, and t-1, which is led by the broker that it prefers."""
    settings = (configured(), balanced(percentage=percentage))
    path = "/brokers/topics/t/partitions/1/state"
    led = znode(6, 10, path, leader=1, leader_epoch=0, isr=[1], topic="t", partition=1)
    begun = (grant(1, 10, 1, 1), registered(2, 1), registered(3, 2), assigned(4, data))
    known = elected(3, 6, 1, [1])
    return judged(*settings, *begun, finished(1, 1), WAITS, led, known, *ENDED)


def test_a_broker_need_not_lead_all_partitions_that_prefer_it() -> None:
    both = '{"partitions":{"0":[1,2],"1":[1]}}'
    assert of_two(both, percentage=50).verdict is Verdict.VALID
    assert of_two(both, percentage=49).verdict is Verdict.INVALID


def test_the_balance_may_be_disabled() -> None:
    begun = (configured(), balanced(enabled=False), *BEGUN[2:])
    result = judged(*begun, WAITS, *ENDED)
    assert (result.verdict, result.checked) == (Verdict.VALID, 1)


def test_a_slow_machine_is_not_a_late_controller() -> None:
    late = (*BEGUN, WAITS)
    for slow in (measured(6_000, load=995), measured(6_000, lag=101)):
        assert judged(*late, slow, end(6_000)).verdict is Verdict.UNKNOWN
    assert judged(*late, measured(6_000, load=994), end(6_000)).verdict is Verdict.INVALID
    little = FIRST_LOOK_MS + 100
    assert judged(*late, measured(little, load=100), end(little)).verdict is Verdict.VALID


def test_nothing_is_decided_without_settings_or_without_a_failover() -> None:
    assert judged(configured(), *BEGUN[2:], WAITS, *ENDED).verdict is Verdict.UNKNOWN
    assert judged(*BEGUN[:-1], WAITS, *ENDED).verdict is Verdict.UNKNOWN


def test_an_interrupted_run_has_no_end_up_to_which_a_partition_waited() -> None:
    quiet = harness(6_000, "phase", phase="quiet")
    assert judged(*BEGUN, WAITS, measured(6_000), quiet).verdict is Verdict.UNKNOWN
