"""The outcome of a leader's proposal to take a replica into the ISR: AlterPartition, or the leader's own write."""

from __future__ import annotations

from nemesis.checkers.causes.chain import UNTRACED_CONTROLLER, Chain, Link, expected
from nemesis.checkers.causes.view import View
from nemesis.checkers.explain.words import counted
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.znodes import TOPICS, StateChange
from nemesis.history.events import Event, Kind

STALE_BROKER_EPOCH = "STALE_BROKER_EPOCH"


def proposed_in_vain(view: View, state: StateChange, replica: int) -> Chain:
    """Return the outcome of the proposals to add the replica to the ISR of a state; empty without proposals."""
    proposed = _proposals(view, state, replica)
    if not proposed:
        return []
    leader, first = state.event.leader, proposed[0]
    chain = [
        Link(
            f"{view.ago(first[1])}, leader {leader} proposed an ISR with broker {replica}"
            + (f", the first of {len(proposed)} times" if len(proposed) > 1 else ""),
            first,
        )
    ]
    answers = _answers(view, state, replica, first[1].time)
    if not answers and not view.traces_controller():
        return [*chain, UNTRACED_CONTROLLER]
    if not answers:
        return [*chain, expected(f"an answer to the proposal of leader {leader}")]
    answer = answers[-1]
    chain.append(_answered(view, answer, len(answers)))
    if succeeded(answer[1]):
        return [*chain, expected(f"leader {leader} uses the committed ISR")]
    chain += _stale_epochs(view, answer[1])
    if len(proposed) == 1:
        return [*chain, expected(f"leader {leader} proposes an ISR with broker {replica} again")]
    return [*chain, expected(f"a proposal of leader {leader} that the controller does not refuse")]


def _proposals(view: View, state: StateChange, replica: int) -> list[Row]:
    """The proposals that are about this very state: every committed change raises the partition epoch."""
    leader = state.event.leader
    assert leader is not None
    return [
        item
        for item in view.of_process(
            leader,
            Kind.ISR_CHANGE_PROPOSED,
            topic=state.event.topic,
            partition=state.event.partition,
            leader_epoch=state.event.leader_epoch,
            partition_epoch=state.event.zk_version,
        )
        if replica in (item[1].maximal_isr or ()) and replica not in (item[1].isr or ())
    ]


def _answers(view: View, state: StateChange, replica: int, since_ns: int) -> list[Row]:
    leader = state.event.leader
    handled = [
        item
        for item in view.events(
            Kind.ALTER_PARTITION_HANDLED,
            since_ns=since_ns,
            topic=state.event.topic,
            partition=state.event.partition,
            peer=leader,
        )
        if replica in (item[1].isr or ())
    ]
    if handled:
        return handled
    path = f"{TOPICS}{state.event.topic}/partitions/{state.event.partition}/state"
    return view.events(Kind.ZNODE_OUTCOME, since_ns=since_ns, process=f"broker-{leader}", path=path)


def _answered(view: View, answer: Row, count: int) -> Link:
    event = answer[1]
    by = (
        f"controller {event.node} answered"
        if event.kind == Kind.ALTER_PARTITION_HANDLED
        else "ZooKeeper answered"
    )
    last = f", the last of {counted(count, 'answer')}" if count > 1 else ""
    return Link(f"{view.ago(event)}, {by} {event.error}{last}", answer)


def _stale_epochs(view: View, answer: Event) -> Chain:
    """The broker epochs of a refused request that are not those of the registrations, as of the end of the view."""
    chain: Chain = []
    named = list(zip(answer.isr or (), answer.isr_epochs or (), strict=False))
    if answer.error == STALE_BROKER_EPOCH:
        named = [(answer.peer or 0, answer.broker_epoch or 0)]
    for broker, epoch in named:
        registration = view.registration(broker)
        if registration is not None and epoch >= 0 and epoch != registration.epoch:
            item = registration.created
            text = (
                f"the request named broker epoch {epoch} of broker {broker}, which registered with "
                f"{registration.epoch} {view.ago(item[1])}"
            )
            chain.append(Link(text, item, is_remark=True))
    return chain
