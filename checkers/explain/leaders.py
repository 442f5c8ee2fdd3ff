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
            f"Broker {last.node} knew of leader epoch {first.leader_epoch}, so the order to adopt "
            f"{last.leader_epoch} had been replaced already and must be refused."
        )
    if last.leader_epoch == first.leader_epoch:
        return (
            f"Records are told apart by offset and leader epoch. Brokers {first.leader} and {last.leader} may both "
            f"write in epoch {last.leader_epoch}, different records at the same offset, and no replica can tell "
            "which to keep."
        )
    return (
        "Replicas refuse smaller leader epochs than they know, and cut their logs by epochs: epoch "
        f"{last.leader_epoch} now names two stretches of the log, of two leaderships."
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
            f"In leader epoch {last.leader_epoch} {leader} may lead: what broker {last.node} writes or acknowledges "
            "there, the others do not have to keep."
        )
    if len(case.events) > 1:
        return (
            "Records are told apart by offset and leader epoch. Two leaders of one epoch may write different "
            "records at the same offset, and no replica can tell which to keep."
        )
    if case.is_undecided:
        return (
            f"The log of decided states does not show how epoch {last.leader_epoch} began. Parts of it are missing, "
            "or it ends with a smaller epoch: the election may be in a missing part."
        )
    return (
        "The log of decided states has every state of the partition, greater epochs included. No state has leader "
        f"epoch {last.leader_epoch}, so this epoch had no election."
    )


def leader_from_isr(case: Case) -> str:
    states = [event for event in case.events if event.kind == Kind.ZNODE]
    state, election = states[-1], case.first_of(Kind.LEADER_ELECTED)
    before = states[0] if len(states) > 1 else None
    isr = state.isr or []
    if not isr:
        return (
            "With an empty ISR there is nobody left who certainly has all that is committed, and nobody who may be "
            "elected without losing it."
        )
    if state.leader not in (NO_LEADER, *isr):
        return (
            f"The leader is in sync with itself: an ISR without broker {state.leader} lets others lead without its "
            "records."
        )
    if before is not None and state.leader not in (NO_LEADER, *(before.isr or ())):
        return _outsider(case, state, before)
    if election is not None and election.strategy in ("remove-from-isr", "no-op"):
        return (
            "Taking a broker from the ISR, or raising the epoch, leaves the leader who it is: nobody was asked "
            "whether the new one can lead."
        )
    if election is not None and state.leader not in (election.live or [state.leader]):
        return (
            f"Broker {state.leader} was dead for the controller: a partition whose leader is dead can neither be "
            "read nor written."
        )
    return f"Who is in the ISR counts for what is committed, and only replicas of the partition can: {isr} has others."


def _outsider(case: Case, state: Event, before: Event) -> str:
    if case.is_undecided:
        return (
            f"Broker {state.leader} was not in sync and may lack committed records. That is allowed where unclean "
            "elections are, and no broker tells whether they are."
        )
    return (
        f"Only the members of the ISR {before.isr} certainly had all that was committed. Broker {state.leader} was "
        "none of them, and what it lacks is lost."
    )


def legal_transition(case: Case) -> str:
    if case.is_undecided:
        return (
            "What cannot be read can neither be held against the controller nor be taken for right."
        )
    last = case.events[-1]
    machine = "partition" if last.replica is None else "replica"
    before, after = last.from_state or "", last.to_state or ""
    allowed = PREVIOUS_STATES.get(machine, {}).get(after, frozenset())
    if before not in allowed:
        legal = " or ".join(sorted(allowed)) or "no state"
        return (
            f"A {machine} may become {after} from {legal}: from {before} the steps in between were left out, and what "
            "they do was not done."
        )
    if len(case.events) > 1:
        left_in = case.events[0].to_state
        return (
            f"The same controller in the same term had left it in {left_in}, so it was not in {before} to be taken "
            "from there."
        )
    first = FIRST_STATES.get(machine, frozenset())
    return (
        f"At the beginning of a term a {machine} is {' or '.join(sorted(first))}, and this controller had not "
        f"touched it: it cannot have been {before}."
    )
