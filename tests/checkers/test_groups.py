"""Consumer groups: what a correct coordinator may do, and what convicts one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from nemesis.checkers import CHECKERS, judged_by_default
from nemesis.checkers.breaks.events import client, history, znode
from nemesis.checkers.breaks.groups import (
    commit,
    fetched,
    joined,
    loaded,
    owned,
    request,
    settled,
    static,
    without_member_id,
)
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from nemesis.history.sources import ALL_SOURCES
from tests.checkers.histories import only, power_cut

OWNER = "one-owner-per-generation"
GROWS = "generation-grows"
FENCED = "fenced-member"
OFFSETS = "offsets-read-as-committed"
NAMES = (OWNER, GROWS, FENCED, OFFSETS)
LOST = "CLIENT_TIMED_OUT"


def judged(name: str, *events: Event | list[Event]) -> Result:
    """Judge a history in which each member commits with its assignment."""
    return only(CHECKERS[name].check(), settled(*events), name)


def sentences(name: str, *events: Event | list[Event]) -> list[str]:
    return [finding.sentence for finding in judged(name, *events).findings]


# Ownership


def test_owners_of_two_generations_overlap() -> None:
    first, second = commit(3, 1, 1, 5), commit(5, 1, 2, 6, member="b")
    result = judged(OWNER, owned(1, 1), owned(2, 2, member="b"), first, second)
    assert (result.checked, result.findings) == (2, ())


def test_an_owner_without_an_acknowledged_commit_proves_nothing() -> None:
    unknown = commit(5, 1, 1, 6, member="b", kind="info", error=LOST)
    result = judged(OWNER, owned(1, 1), commit(2, 1, 1, 5), owned(4, 1, member="b"), unknown)
    assert (result.verdict, result.checked) == (Verdict.VALID, 1)


def test_a_commit_behind_the_end_of_an_ownership_proves_nothing() -> None:
    given_up = owned(5, 1, member="b", kind="revoked", reason="rebalance")
    late = commit(6, 1, 1, 6, member="b")
    assert not sentences(
        OWNER, owned(1, 1), commit(2, 1, 1, 5), owned(4, 1, member="b"), given_up, late
    )


def test_a_member_may_be_assigned_a_partition_twice() -> None:
    result = judged(OWNER, owned(1, 1), commit(2, 1, 1, 5), owned(4, 1), commit(5, 1, 1, 6))
    assert (result.checked, result.findings) == (2, ())


def test_the_processes_of_a_static_member_are_one_owner() -> None:
    """The second process takes the membership over in the same generation; the first one may still sleep."""
    first: list[Event | list[Event]] = [owned(1, 1, instance="i"), commit(2, 1, 1, 5, instance="i")]
    second: list[Event | list[Event]] = [
        owned(4, 1, member="b", instance="i"),
        commit(5, 1, 1, 6, member="b", instance="i"),
    ]
    assert not sentences(OWNER, *first, *second)
    another: list[Event | list[Event]] = [
        owned(4, 1, member="b", instance="j"),
        commit(5, 1, 1, 6, member="b", instance="j"),
    ]
    assert len(sentences(OWNER, *first, *another)) == 1


def test_a_partition_that_is_kept_belongs_to_its_member_in_each_generation() -> None:
    """A cooperative member is assigned it again; what it commits in the new generation counts there."""
    kept: list[Event | list[Event]] = [
        owned(1, 1),
        commit(2, 1, 1, 5),
        owned(4, 2),
        commit(5, 1, 2, 6),
    ]
    assert judged(OWNER, *kept).checked == 2
    assert not sentences(OWNER, *kept)
    other: list[Event | list[Event]] = [owned(7, 2, member="b"), commit(8, 1, 2, 7, member="b")]
    assert len(sentences(OWNER, *kept, *other)) == 1


# Generations


def test_the_same_generation_is_answered_again() -> None:
    assert not sentences(GROWS, commit(1, 1, 2, 5), joined(3, 1, 2), joined(5, 1, 3))


def test_a_broker_that_has_acknowledged_nothing_may_answer_an_old_generation() -> None:
    assert not sentences(GROWS, commit(1, 1, 2, 5), joined(3, 2, 1))


def test_a_broker_knows_what_was_acknowledged_before_its_own_commit_was_sent() -> None:
    events = [commit(1, 1, 5, 5), commit(3, 2, 1, 6), joined(5, 2, 2)]
    assert sentences(GROWS, *events) == [
        "Broker 2 answered member-a that it is in generation 2 of g, after generation 5 had begun."
    ]


def test_a_generation_without_an_acknowledged_commit_may_come_again() -> None:
    unknown = commit(1, 1, 2, 5, kind="info", error=LOST)
    assert not sentences(GROWS, joined(0, 1, 2), unknown, joined(3, 1, 1))


# Members


def test_a_commit_that_was_sent_before_the_later_one_was_acknowledged_is_right() -> None:
    slow = commit(0, 1, 1, 6, member="b", taking=5)
    assert not sentences(FENCED, commit(1, 1, 2, 5), slow)


def test_a_former_coordinator_accepts_heartbeats_and_no_commits() -> None:
    assert not sentences(FENCED, commit(1, 1, 2, 5), request(3, "heartbeat", 2, 1, member="b"))
    assert sentences(FENCED, commit(1, 1, 2, 5), commit(3, 2, 1, 6, member="b")) == [
        "Broker 2 accepted a commit-offset of member-b in generation 1 of g, after generation 2 had begun."
    ]


def test_a_refused_zombie_is_right() -> None:
    refused = commit(3, 1, 1, 6, member="b", kind="fail", error="ILLEGAL_GENERATION")
    assert not sentences(FENCED, commit(1, 1, 2, 5), refused)


def test_a_coordinator_that_loads_accepts_each_heartbeat() -> None:
    late = request(7, "heartbeat", 1, 1, member="b")
    before: list[Event | list[Event]] = [loaded(0, 1), commit(1, 1, 2, 5)]
    assert not sentences(FENCED, *before, loaded(5, 1), late)
    assert sentences(FENCED, *before, late)


def test_a_heartbeat_counts_again_once_the_broker_has_looked_at_the_group() -> None:
    late = request(9, "heartbeat", 1, 1, member="b")
    before: list[Event | list[Event]] = [loaded(0, 1), commit(1, 1, 2, 5), loaded(5, 1)]
    assert sentences(FENCED, *before, fetched(7, 1, 5), late) == [
        "Broker 1 accepted a heartbeat of member-b in generation 1 of g, after generation 2 had begun."
    ]


def test_a_commit_without_an_assignment_does_not_prove_its_generation() -> None:
    events = [commit(1, 1, 2, 5), joined(3, 1, 1), commit(5, 1, 1, 6, member="b")]
    for name in (GROWS, FENCED):
        assert only(CHECKERS[name].check(), history(*events), name).findings == ()
        assert sentences(name, *events)


def test_a_member_that_joins_again_has_no_assignment() -> None:
    again = joined(1, 1, 2)
    assert sentences(GROWS, again, commit(3, 1, 2, 5), joined(5, 1, 1)) == []


def test_a_client_without_membership_commits_in_an_empty_group() -> None:
    assert not sentences(FENCED, commit(1, 1, 2, 5), commit(3, 1, -1, 6, member="b"))


def test_a_member_that_has_left_is_refused() -> None:
    left = request(1, "leave-group", 1, 1)
    assert sentences(FENCED, loaded(0, 1), left, commit(3, 1, 1, 5)) == [
        "Broker 1 accepted a commit-offset of member-a as id-a in g, after that member had left."
    ]
    refused = commit(3, 1, 1, 5, kind="fail", error="UNKNOWN_MEMBER_ID")
    assert not sentences(FENCED, loaded(0, 1), left, refused)


def test_a_member_that_leaves_again_has_left_before() -> None:
    left, again = (request(time, "leave-group", 1, 1) for time in (1, 6))
    assert len(sentences(FENCED, loaded(0, 1), left, commit(3, 1, 1, 5), again)) == 1


def removal(time: int, node: int = 1) -> list[Event]:
    """An administrator takes the static member out of the group: the request names no member id."""
    events = static(request(time, "leave-group", node, 1, member="admin"))
    return [msgspec.structs.replace(event, member=None) for event in events]


@pytest.mark.parametrize("member", ["a", "b"])
def test_a_static_member_that_was_taken_out_is_refused(member: str) -> None:
    """Also the member id of a process before, which another one had taken over."""
    joins = [static(joined(0, 2, 1, taking=0)), static(joined(1, 2, 1, member="b", taking=0))]
    late = static(commit(8, 1, 1, 5, member=member))
    assert _fenced(loaded(0, 1), *joins, removal(3), late) == [
        f"Broker 1 accepted a commit-offset of member-{member} as id-{member} in g, after that member had left."
    ]
    assert _fenced(loaded(0, 1), *joins, removal(3), loaded(6, 1), late) == []
    assert _fenced(loaded(0, 1), *joins, removal(3, node=2), late) == []
    assert _fenced(loaded(0, 1), removal(3), static(joined(4, 1, 1, member=member)), late) == []


def test_a_coordinator_that_loads_has_members_again_that_had_left() -> None:
    left = request(1, "leave-group", 1, 1)
    assert not sentences(FENCED, loaded(0, 1), left, loaded(3, 1), commit(5, 1, 1, 5))
    assert not sentences(FENCED, loaded(0, 1), left, loaded(3, 2), commit(5, 2, 1, 5))
    assert not sentences(FENCED, left, commit(5, 1, 1, 5))


def test_a_commit_that_was_sent_before_its_member_had_left_is_right() -> None:
    slow = commit(1, 1, 1, 5, taking=5)
    assert not sentences(FENCED, loaded(0, 1), slow, request(2, "leave-group", 1, 1))


def test_a_process_without_a_member_id_is_given_one_of_its_own() -> None:
    """KAFKA-8500: two processes with one member id look the same, so neither is fenced."""
    first = static(joined(1, 1, 1))
    again = without_member_id(static(joined(4, 2, 2)))
    assert _fenced(first, again) == [
        "Broker 2 answered member-a, which joined g without a member id, with id-a, which member-a had been given."
    ]
    assert _fenced(first, static(joined(4, 2, 2))) == [], "a member joins again"
    assert _fenced(first, without_member_id(static(joined(4, 2, 2, member="b")))) == []
    assert _fenced(without_member_id(first)) == [], "its first answer"


def test_a_static_member_that_was_taken_over_is_refused() -> None:
    joins = [static(joined(0, 1, 1)), static(joined(2, 1, 1, member="b"))]
    synced = static(request(4, "sync-group", 1, 1, member="b"))
    taken_over = [*joins, synced, static(commit(6, 1, 1, 5, member="b"))]
    late = static(commit(8, 1, 1, 6))
    before = static(commit(5, 1, 1, 6, taking=5))
    assert _fenced(*taken_over, late) == [
        "Broker 1 accepted a commit-offset of id-a in g, after id-b had taken over i."
    ]
    assert _fenced(*taken_over, before) == []
    assert _fenced(*joins, static(commit(6, 1, 1, 5, member="b")), late) == []
    reverse = [static(joined(0, 1, 1, taking=3)), *taken_over[1:], late]
    assert _fenced(*reverse) == []


def test_a_broker_that_has_answered_the_assignment_of_the_next_process_knows_it() -> None:
    joins = [static(joined(1, 1, 1)), static(joined(3, 1, 1, member="b"))]
    taken_over = [*joins, static(request(5, "sync-group", 1, 1, member="b"))]
    late = static(commit(9, 1, 1, 5))
    assert len(_fenced(loaded(0, 1), *taken_over, late)) == 1
    assert _fenced(loaded(0, 1), *taken_over, loaded(7, 1), late) == []
    assert _fenced(*taken_over, late) == []


def _fenced(*events: Event | list[Event]) -> list[str]:
    result = only(CHECKERS[FENCED].check(), history(*events), FENCED)
    return [finding.sentence for finding in result.findings]


# Offsets


def test_an_unknown_commit_is_read_or_vanishes() -> None:
    unknown = commit(3, 1, 1, 6, kind="info", error=LOST)
    for offsets in ([6, 5], [5, 6], [5, 5], [6, 6]):
        reads = [fetched(5 + 2 * n, 1, offset) for n, offset in enumerate(offsets)]
        assert not sentences(OFFSETS, commit(1, 1, 1, 5), unknown, *reads)


def test_a_former_coordinator_answers_what_it_had() -> None:
    events = [commit(1, 1, 1, 5), commit(3, 2, 1, 6), fetched(5, 1, 5), fetched(7, 3, -1)]
    assert judged(OFFSETS, *events).findings == ()


def test_a_coordinator_has_what_others_acknowledged_before_its_own_commit() -> None:
    other = commit(3, 2, 1, 7, partition=1)
    (sentence,) = sentences(OFFSETS, commit(1, 1, 1, 5), other, fetched(5, 2, -1))
    assert sentence.startswith("Broker 2 answered that no offset of t-0 is committed in g")


def test_a_commit_that_was_under_way_may_come_before_or_after() -> None:
    slow = commit(2, 1, 1, 6, member="b", taking=3)
    assert not sentences(OFFSETS, commit(1, 1, 1, 5, taking=2), slow, fetched(7, 1, 5))
    assert not sentences(OFFSETS, commit(1, 1, 1, 5, taking=2), slow, fetched(7, 1, 6))


def test_a_smaller_offset_that_was_committed_later_is_read() -> None:
    assert not sentences(OFFSETS, commit(1, 1, 1, 5), commit(3, 1, 1, 2), fetched(5, 1, 2))


def test_an_offset_of_another_partition_is_not_this_ones() -> None:
    assert sentences(OFFSETS, commit(1, 1, 1, 5, partition=1), fetched(3, 1, 5)) == [
        "Broker 1 answered that offset 5 of t-0 is committed in g, which no member had committed."
    ]


TOPIC_GONE = znode(9, 10, "/brokers/topics/t", zk_op="delete")
TOPIC_MARKED = znode(9, 10, "/admin/delete_topics/t", zk_op="create")
DELETES_TOPIC = client(4, "administrator-1", "invoke", "delete-topic", 4, topic="t")


@pytest.mark.parametrize("shown", [TOPIC_GONE, TOPIC_MARKED, DELETES_TOPIC])
def test_the_offsets_of_a_deleted_topic_are_removed(shown: Event) -> None:
    removed = [commit(1, 1, 1, 5), fetched(5, 1, -1)]
    assert not sentences(OFFSETS, shown, *removed)
    assert sentences(OFFSETS, shown, *removed, commit(7, 1, 1, 6), fetched(9, 1, 5))


def test_the_deletion_of_another_topic_removes_no_offset() -> None:
    others = [
        znode(9, 10, "/brokers/topics/u", zk_op="delete"),
        znode(9, 10, "/brokers/topics/t/partitions/0", zk_op="delete"),
        znode(9, 10, "/brokers/topics/t", zk_op="create"),
    ]
    assert sentences(OFFSETS, *others, commit(1, 1, 1, 5), fetched(5, 1, -1))


# All of them


@pytest.mark.parametrize("name", NAMES)
def test_what_the_last_replica_of_offsets_lost_is_allowed(name: str) -> None:
    for events in CHECKERS[name].breaks:
        cut = power_cut("t-0", "__consumer_offsets-3")
        result = only(CHECKERS[name].check(), (cut, *events), name)
        assert result.verdict is Verdict.VALID
        assert {finding.verdict for finding in result.findings} == {Verdict.VALID}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", [power_cut(), power_cut("t-0")])
def test_another_power_cut_excuses_nothing(name: str, cut: Event) -> None:
    for events in CHECKERS[name].breaks:
        result = only(CHECKERS[name].check(), (cut, *events), name)
        assert result.verdict is Verdict.INVALID


@pytest.mark.parametrize("name", NAMES)
def test_where_unclean_leaders_are_permitted_what_was_lost_is_allowed(name: str) -> None:
    permits = Event(
        time=0,
        process="broker-1",
        kind="broker-started",
        seq=0,
        unclean_leader_election_enable=True,
    )
    for events in CHECKERS[name].breaks:
        assert only(CHECKERS[name].check(), (permits, *events), name).verdict is Verdict.VALID


@pytest.mark.parametrize("name", NAMES)
def test_two_groups_have_nothing_to_do_with_each_other(name: str) -> None:
    for events in CHECKERS[name].breaks:
        apart = [
            _in_other_group(event) if event.process == "member-b" else event for event in events
        ]
        result = only(CHECKERS[name].check(), apart, name)
        is_of_one_member = all(event.process != "member-b" for event in events)
        assert (result.verdict is Verdict.INVALID) == is_of_one_member


def _in_other_group(event: Event) -> Event:
    columns = {name: getattr(event, name) for name in event.__struct_fields__}
    return Event(**{**columns, "group": "other"})


def test_groups_are_judged_where_they_are_used() -> None:
    def judges(workload: str | None) -> Sequence[str]:
        return [name for name in judged_by_default(ALL_SOURCES, workload) if name in NAMES]

    assert judges("groups") == judges(None) == [*NAMES]
    assert judges("produce-consume") == []
