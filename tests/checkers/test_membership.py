"""Members stay in their groups while their sessions go on: what convicts a coordinator, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks.events import broker, history, znode
from nemesis.checkers.breaks.groups import commit, joined, loaded, request, static
from nemesis.checkers.breaks.membership import FENCED, configured, member, refused
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import only, power_cut

NAME = "membership-kept"
LOST: dict[str, Any] = {"kind": "info", "error": "CLIENT_TIMED_OUT"}
"""The outcome of a request without an answer."""


def judged(*events: Event | list[Event]) -> Result:
    return only(CHECKERS[NAME].check(), history(configured(), *events), NAME)


def is_convicted(*events: Event | list[Event]) -> bool:
    return judged(*events).verdict is Verdict.INVALID


def other_commit(time: int, node: int, **columns: Any) -> list[Event]:
    """A commit of another member: it shows that the broker has what was acknowledged before."""
    return commit(time, node, 1, time, member="c", **columns)


def replaced(time: int, **columns: Any) -> list[Event]:
    """A process without a member id joins under the instance id of the others, and becomes member z."""
    join = joined(time, 1, 1, member="z", **columns)
    join[0].member = None
    return static(join)


def test_without_the_time_outs_nothing_is_judged() -> None:
    events = history(member(1), refused(10, 1))
    assert only(CHECKERS[NAME].check(), events, NAME).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("f", ["heartbeat", "sync-group", "commit-offset", "join-group"])
def test_a_member_that_is_in_its_group_is_not_unknown(f: str) -> None:
    about = {"offset": 9, "leader_epoch": 0, "value": 9} if f == "commit-offset" else {}
    (finding,) = judged(member(1), refused(10, 1, f, **about)).findings
    assert finding.sentence == (
        f"Broker 1 refused a {f} of member-a in g with UNKNOWN_MEMBER_ID, though the session of id-a went on."
    )


def test_another_error_is_not_about_the_membership() -> None:
    for error in ("ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "NOT_COORDINATOR"):
        assert not is_convicted(member(1), refused(10, 1, error=error))


@pytest.mark.parametrize(("time", "is_late"), [(280, False), (290, True)])
def test_a_session_ends_without_a_sign_of_life(time: int, *, is_late: bool) -> None:
    """The assignment was asked for at 3 ms; a session lasts 300 ms, and a timer may be 20 ms early."""
    assert is_convicted(member(1), refused(time, 1)) is not is_late


def test_a_heartbeat_extends_a_session_only_with_a_commit_behind_it() -> None:
    beat = request(200, "heartbeat", 1, 1)
    assert not is_convicted(member(1), beat, refused(300, 1))
    assert is_convicted(member(1), beat, commit(210, 1, 1, 9), refused(300, 1))
    # A commit is accepted while a rebalance waits for the member: it may be out of the group right behind it.
    assert not is_convicted(member(1), commit(210, 1, 1, 9), refused(300, 1))


def test_a_heartbeat_at_another_broker_is_no_sign_for_the_broker_of_the_proof() -> None:
    beat = request(200, "heartbeat", 2, 1)
    assert not is_convicted(member(1), beat, commit(210, 1, 1, 9), refused(300, 1))


def test_a_heartbeat_that_a_loading_coordinator_accepted_is_no_sign() -> None:
    """It accepts every heartbeat: here of a member that was out of generation 2 before the groups were loaded."""
    committed = [*member(2), *commit(250, 1, 1, 9)]
    beat, unknown = request(420, "heartbeat", 1, 1), refused(430, 1)
    assert not is_convicted(loaded(1, 1), committed, loaded(418, 1), beat, unknown)
    assert is_convicted(loaded(1, 1), committed, beat, unknown), "it has not loaded in between"
    assert not is_convicted(committed, beat, unknown), "no trace shows that it has not"


def test_a_member_that_has_committed_nothing_may_have_been_lost_with_its_coordinator() -> None:
    first = [*joined(1, 1, 1), *request(3, "sync-group", 1, 1), *request(5, "heartbeat", 1, 1)]
    assert not is_convicted(first, refused(10, 1))
    assert not is_convicted(first, commit(7, 1, 1, 5, **LOST), refused(10, 1))


def test_a_commit_without_an_assignment_proves_nothing() -> None:
    assert not is_convicted(joined(1, 1, 1), commit(3, 1, 1, 5), refused(10, 1))


def test_a_broker_that_may_be_a_former_coordinator_refuses_members_of_its_successor() -> None:
    assert not is_convicted(member(1), refused(20, 2))
    assert not is_convicted(member(1), other_commit(2, 2), refused(20, 2)), "sent too early"
    assert is_convicted(member(1), other_commit(10, 2), refused(20, 2))


OFFSETS: dict[str, Any] = {"topic": "__consumer_offsets", "topic_id": "offsets", "partition": 0}
STATE = "/brokers/topics/__consumer_offsets/partitions/0/state"


def leads(zxid: int, node: int, path: str = STATE) -> Event:
    """The metadata have this leader of a partition of committed offsets."""
    return znode(zxid, 10, path, leader=node, leader_epoch=zxid, isr=[1, 2])


def verdict(*events: Event | list[Event]) -> Verdict:
    return judged(*events).verdict


@pytest.mark.parametrize("f", ["heartbeat", "sync-group", "join-group"])
def test_a_coordinator_that_unloads_its_groups_may_not_find_one(f: str) -> None:
    """Kafka's looks first whether it has the partition and then for the group, without a lock around both."""
    history_of = [member(1), refused(10, 1, f)]
    assert verdict(leads(1, 1), leads(2, 2), *history_of) is Verdict.UNKNOWN
    assert verdict(leads(1, 2), leads(2, 1), leads(3, 1), *history_of) is Verdict.INVALID
    other = STATE.replace("__consumer_offsets", "t")
    assert verdict(leads(1, 1, other), leads(2, 2, other), *history_of) is Verdict.INVALID


def test_a_traced_coordinator_unloads_its_groups_when_it_follows() -> None:
    moved = [leads(1, 1), leads(2, 2), loaded(1, 1)]
    for time, expected in ((3, "INVALID"), (8, "UNKNOWN"), (20, "INVALID")):
        follows = broker(time, 1, "become-follower", **OFFSETS)
        known = verdict(*moved, follows, member(1), refused(10, 1))
        assert known is Verdict[expected], time


def test_an_unloading_coordinator_fences_no_process_and_refuses_no_commit_so() -> None:
    moved = [leads(1, 1), leads(2, 2)]
    about = {"offset": 9, "leader_epoch": 0, "value": 9}
    assert is_convicted(moved, member(1), refused(10, 1, "commit-offset", **about))
    assert is_convicted(moved, static(member(1)), static(refused(10, 1, **FENCED)))


def test_a_commit_behind_the_refusal_shows_what_the_broker_had_if_it_did_not_load() -> None:
    proof = other_commit(30, 2)
    assert not is_convicted(member(1), refused(20, 2), proof), "no traces"
    assert is_convicted(member(1), loaded(10, 2), refused(20, 2), proof)
    assert not is_convicted(member(1), loaded(10, 2), refused(20, 2), loaded(25, 2), proof)


def test_a_new_coordinator_begins_sessions_again() -> None:
    later = [*other_commit(390, 2), *refused(400, 2)]
    assert not is_convicted(member(1), later)
    assert is_convicted(member(1), loaded(200, 2), later)
    assert not is_convicted(member(1), loaded(200, 2), loaded(300, 2), later), "too late"
    assert not is_convicted(member(1), loaded(200, 2), other_commit(390, 2), refused(490, 2))


@pytest.mark.parametrize("outcome", [{}, LOST])
def test_a_member_that_has_left_is_unknown_and_perhaps_one_that_has_tried(
    outcome: dict[str, Any],
) -> None:
    leaving = request(8, "leave-group", 1, 1, **outcome)
    assert not is_convicted(member(1), leaving, refused(10, 1))
    refusal = {"kind": "fail", "error": "COORDINATOR_LOAD_IN_PROGRESS"}
    assert is_convicted(member(1), request(8, "leave-group", 1, 1, **refusal), refused(10, 1))


def test_an_administrator_takes_a_static_member_out() -> None:
    leaving = static(request(8, "leave-group", 1, 1, member="x"))
    for event in leaving:
        event.member = None
    assert not is_convicted(static(member(1)), leaving, static(refused(10, 1)))
    assert is_convicted(static(member(1)), static(refused(10, 1)))


@pytest.mark.parametrize("outcome", [{}, LOST, {"kind": "fail", "error": "FENCED_INSTANCE_ID"}])
def test_a_static_member_is_fenced_when_another_process_may_have_taken_over(
    outcome: dict[str, Any],
) -> None:
    fenced = static(refused(20, 1, **FENCED))
    assert is_convicted(static(member(1)), fenced)
    assert not is_convicted(static(member(1)), replaced(10, **outcome), fenced)


def test_a_request_without_an_answer_may_take_over_long_after() -> None:
    fenced = static(refused(20, 1, **FENCED))
    assert not is_convicted(replaced(0, **LOST), static(member(3)), fenced)
    assert is_convicted(replaced(0), static(member(3)), fenced), "it was answered before"


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
def test_a_request_that_a_coordinator_could_not_store_takes_over_only_before_its_answer(
    error: str,
) -> None:
    """What it wrote stands in the log before the member that joins behind the answer; it may undo one that is there."""
    fenced = static(refused(20, 1, **FENCED))
    outcome = {"kind": "info", "error": error}
    assert is_convicted(replaced(0, **outcome), static(member(3)), fenced)
    assert not is_convicted(static(member(1)), replaced(10, **outcome), fenced)


def test_a_group_that_is_full_sends_members_away() -> None:
    full = joined(7, 1, 1, member="d", kind="fail", error="GROUP_MAX_SIZE_REACHED")
    assert not is_convicted(member(1), full, refused(10, 1))


def test_a_coordinator_that_has_lost_its_last_replica_may_forget() -> None:
    result = judged(power_cut("__consumer_offsets-3"), member(1), refused(10, 1))
    assert (result.verdict, len(result.findings)) == (Verdict.VALID, 1)
