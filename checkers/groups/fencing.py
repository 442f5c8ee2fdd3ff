"""Generations: what is answered to a JoinGroup, and which members' requests are accepted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.groups.acknowledged import Acknowledged
from nemesis.checkers.groups.group_operations import (
    COMMIT,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    Group,
    Operation,
)
from nemesis.checkers.groups.loads import Loads


def fallen_generations(name: str, key: str, group: Group, known: Acknowledged) -> Iterator[Finding]:
    """Find members that joined a generation below one that their coordinator had."""
    for join in group.ok(JOIN):
        later = known.generation_at(join)
        if later is not None and join.generation < later.generation:
            sentence = (
                f"Broker {join.event.node} answered {join.event.process} that it is in generation "
                f"{join.generation} of {key}, after generation {later.generation} had begun."
            )
            yield _finding(name, key, sentence, later, join)


def accepted_late(
    name: str, key: str, group: Group, known: Acknowledged, loads: Loads
) -> Iterator[Finding]:
    """Find requests of a generation that were accepted although a later one had begun."""
    for request in group.ok(COMMIT, HEARTBEAT, SYNC):
        if request.generation < 0:
            continue  # a client without membership commits in an empty group
        later = known.generation_at(request)
        if request.event.f == COMMIT:
            later = known.generation_before(request) or later
        if later is None or request.generation >= later.generation:
            continue
        if request.event.f == HEARTBEAT and not _has_loaded(request, known, loads):
            continue
        sentence = (
            f"Broker {request.event.node} accepted a {request.event.f} of {request.event.process} in "
            f"generation {request.generation} of {key}, after generation {later.generation} had begun."
        )
        yield _finding(name, key, sentence, later, request)


def accepted_after_leaving(name: str, key: str, group: Group, loads: Loads) -> Iterator[Finding]:
    """Find requests of members that were accepted by the broker that had let the member go."""
    departures = _departures(group)
    for request in group.ok(COMMIT, HEARTBEAT, JOIN, SYNC):
        member = request.invoked[1].member
        leave = next(
            (item for item in departures[member] if _was_let_go(item, request, loads)), None
        )
        if leave is not None:
            sentence = (
                f"Broker {request.event.node} accepted a {request.event.f} of {request.event.process} as {member} in "
                f"{key}, after that member had left."
            )
            yield _finding(name, key, sentence, leave, request)


def _departures(group: Group) -> defaultdict[str | None, list[Operation]]:
    """Return by member id the accepted requests that took the member out of the group.

    An administrator names the instance id of a static member. That ends each member id with which a process of this
    instance had joined before: the last one leaves, and those before it are fenced already.
    """
    departures: defaultdict[str | None, list[Operation]] = defaultdict(list)
    joined: dict[str | None, Operation] = {}
    for join in sorted(group.ok(JOIN), key=lambda item: item.ended):
        joined.setdefault(join.event.member, join)
    for leave in group.ok(LEAVE):
        asked = leave.invoked[1]
        if asked.member is not None:
            departures[asked.member].append(leave)
        elif asked.instance is not None:
            for member, join in joined.items():
                if join.event.instance == asked.instance and join.ended < leave.began:
                    departures[member].append(leave)
    return departures


def _was_let_go(leave: Operation, request: Operation, loads: Loads) -> bool:
    return (
        leave.event.node == request.event.node
        and leave.ended < request.began
        and loads.none_between(leave, request)
    )


def accepted_after_takeover(name: str, key: str, group: Group, loads: Loads) -> Iterator[Finding]:
    """Find commits of static members that were acknowledged although another process had taken over before."""
    for former, latter in _takeovers(group):
        proofs = [
            item
            for item in group.ok(COMMIT, SYNC)
            if item.event.member == latter.event.member
            and (item.is_settled or item.event.f == SYNC)
        ]
        for commit in group.ok(COMMIT):
            if commit.event.member != former.event.member:
                continue
            proof = next((item for item in proofs if _is_known(item, commit, loads)), None)
            if proof is not None:
                sentence = (
                    f"Broker {commit.event.node} accepted a {commit.event.f} of {former.event.member} in {key}, after "
                    f"{latter.event.member} had taken over {former.event.instance}."
                )
                yield _finding(name, key, sentence, proof, commit)


def shared_member_ids(name: str, key: str, group: Group) -> Iterator[Finding]:
    """Find processes that joined without a member id, and were answered the one of another process."""
    first: dict[str | None, Operation] = {}
    for join in sorted(group.ok(JOIN), key=lambda item: item.ended):
        former = first.setdefault(join.event.member, join)
        if join.invoked[1].member is None and former.ended < join.began:
            sentence = (
                f"Broker {join.event.node} answered {join.event.process}, which joined {key} without a member id, "
                f"with {join.event.member}, which {former.event.process} had been given."
            )
            yield _finding(name, key, sentence, former, join)


def _is_known(proof: Operation, commit: Operation, loads: Loads) -> bool:
    """Whether the broker of a commit knew of a member that had been answered so, for certain.

    Every coordinator has the members of an acknowledged commit. An assignment is in the memory of the broker that
    answered it; that broker may have loaded it from a log in which it was not committed.
    """
    if proof.ended >= commit.began:
        return False
    if proof.event.f == COMMIT:
        return True
    return proof.event.node == commit.event.node and loads.none_between(proof, commit)


def _takeovers(group: Group) -> Iterator[tuple[Operation, Operation]]:
    """Return the first joins of two members of one instance, if the latter joined after the former for certain."""
    first: dict[str | None, dict[str | None, Operation]] = defaultdict(dict)
    for join in group.ok(JOIN):
        if join.event.instance is not None:
            first[join.event.instance].setdefault(join.event.member, join)
    for joins in first.values():
        for former, latter in permutations(joins.values(), 2):
            if former.ended < latter.began:
                yield former, latter


def _has_loaded(request: Operation, known: Acknowledged, loads: Loads) -> bool:
    """Whether the broker looked at the group before it answered, for certain."""
    answer = known.answer_before(request)
    return answer is not None and loads.none_between(answer, request)


def _finding(name: str, key: str, sentence: str, later: Operation, wrong: Operation) -> Finding:
    return finding(name, key, sentence, _row(later), wrong.invoked[0], _row(wrong))


def _row(operation: Operation) -> int | None:
    return None if operation.completed is None else operation.completed[0]
