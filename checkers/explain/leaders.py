"""Why both cannot be: leader epochs, elections, the states of partitions and replicas."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case
from nemesis.checkers.state_machines import FIRST_STATES, PREVIOUS_STATES
from nemesis.history.events import Event, Kind

NO_LEADER: Final = -1


def leader_epoch_grows(case: Case) -> str:
    first, last = case.events[0], case.events[-1]
    if last.kind != Kind.ZNODE:
        return (
            f"Broker {last.node} knew leader epoch {first.leader_epoch}. So the request with leader epoch "
            f"{last.leader_epoch} was outdated, and the broker must refuse it."
        )
    if last.leader_epoch == first.leader_epoch:
        return (
            f"Records are told apart by offset and leader epoch. Brokers {first.leader} and {last.leader} may both "
            f"write in epoch {last.leader_epoch}, different records at the same offset, and no replica can tell "
            "which to keep."
        )
    return (
        "Replicas refuse leader epochs that are smaller than one they know, and compare their logs by epochs. Epoch "
        f"{last.leader_epoch} now stands for records of two different terms."
    )


def one_leader_per_epoch(case: Case) -> str:
    last = case.events[-1]
    named = case.first_of(Kind.ZNODE)
    if named is not None:
        leader = (
            "nobody"
            if named.leader in (None, NO_LEADER)
            else f"broker {named.leader} and nobody else"
        )
        return (
            f"In leader epoch {last.leader_epoch} {leader} may lead. Records that broker {last.node} appends or "
            "acknowledges in this epoch may be lost, because the other replicas follow ZooKeeper's leader."
        )
    if len(case.events) > 1:
        return (
            "Replicas compare records by offset and leader epoch. Two leaders in one epoch may append different "
            "records at the same offset, and no replica can notice the difference."
        )
    if case.is_undecided:
        return (
            f"The log of the metadata does not show how epoch {last.leader_epoch} began. Parts of this log are "
            "missing, or it ends with a smaller epoch. So the election may be in a missing part."
        )
    return (
        "The log of the metadata has every state of the partition, also with greater epochs. No state has leader "
        f"epoch {last.leader_epoch}, so the controller never elected a leader for this epoch."
    )


def leader_from_isr(case: Case) -> str:
    states = [event for event in case.events if event.kind == Kind.ZNODE]
    state, election = states[-1], case.first_of(Kind.LEADER_ELECTED)
    before = states[0] if len(states) > 1 else None
    isr = state.isr or []
    if not isr:
        return (
            "The ISR has the replicas that certainly have all committed records. If it is empty, no leader can be "
            "elected without losing records."
        )
    if state.leader not in (NO_LEADER, *isr):
        return (
            f"A leader is always in its own ISR. Without broker {state.leader} in the ISR, a broker that lacks the "
            "leader's records may be elected next."
        )
    if before is not None and state.leader not in (NO_LEADER, *(before.isr or ())):
        return _outsider(case, state, before)
    if election is not None and election.strategy in ("remove-from-isr", "no-op"):
        return (
            "Removing a broker from the ISR, or raising the epoch, must not change the leader. The controller did "
            "not check whether the new leader can lead."
        )
    if election is not None and state.leader not in (election.live or [state.leader]):
        return (
            f"The controller knew that broker {state.leader} was dead. A partition with a dead leader can neither be "
            "read nor written."
        )
    return (
        "A record is committed when all members of the ISR have it. So all members must be replicas of the "
        f"partition, and in {isr} some are not."
    )


def _outsider(case: Case, state: Event, before: Event) -> str:
    if case.is_undecided:
        return (
            f"Broker {state.leader} was not in the ISR and may lack committed records. That is allowed only if the "
            "configuration permits unclean elections, and the history does not contain that setting."
        )
    return (
        f"Only the members of the ISR {before.isr} certainly had all committed records. Broker {state.leader} was "
        "not a member, so the records that it lacks are lost."
    )


def legal_transition(case: Case) -> str:
    if case.is_undecided:
        return "The event lacks values, so it is not known whether the transition was legal."
    last = case.events[-1]
    machine = "partition" if last.replica is None else "replica"
    before, after = last.from_state or "", last.to_state or ""
    allowed = PREVIOUS_STATES.get(machine, {}).get(after, frozenset())
    if before not in allowed:
        legal = " or ".join(sorted(allowed)) or "no state"
        return (
            f"A {machine} may become {after} only from {legal}. From {before}, the steps between were skipped, and "
            "their actions were not carried out."
        )
    if len(case.events) > 1:
        left_in = case.events[0].to_state
        return f"The same controller, in the same epoch, had last put it into {left_in}. So it was not in {before}."
    first = FIRST_STATES.get(machine, frozenset())
    return (
        f"At the beginning of a controller epoch each {machine} is {' or '.join(sorted(first))}. This controller had "
        f"not changed it yet, so it cannot have been {before}."
    )
