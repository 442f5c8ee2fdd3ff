"""Why both cannot be: controllers, their epochs, and the epochs of brokers."""

from __future__ import annotations

from nemesis.checkers.framework.event_list import succeeded
from nemesis.checkers.framework.reason import Case
from nemesis.checkers.znodes import CONTROLLER_EPOCH
from nemesis.history.events import Kind


def single_controller(case: Case) -> str:
    acts = [event for event in case.events if event.path != CONTROLLER_EPOCH]
    epoch = case.events[-1].controller_epoch
    if not acts:
        return (
            f"Brokers tell controllers apart by their epoch alone: of two that were granted epoch {epoch}, nobody "
            "who hears one can know that the other one has taken its place."
        )
    if len(acts) < len(case.events):
        whose = (
            "The two sessions are not one broker's."
            if acts[-1].node is None
            else f"That session is not one of broker {acts[-1].node}."
        )
        return (
            f"{whose} Brokers tell controllers apart by their epoch alone, so who acts in epoch {epoch} without "
            "having won it is obeyed as if it had."
        )
    if len(acts) == 1 and case.is_undecided:
        return (
            f"ZooKeeper's log shows no grant of epoch {epoch}, but it ends with a smaller one: the grant may stand "
            "in a part that was still being written."
        )
    if len(acts) == 1:
        return (
            f"ZooKeeper's log shows grants of greater epochs and none of {epoch}: nobody has won it, and nobody may "
            "act in it."
        )
    if acts[0].node == acts[1].node:
        return (
            "An epoch is won by one process; started anew, a broker has to win another one. The later life acts on "
            "what the earlier one knew."
        )
    return f"Epoch {epoch} can be granted to one broker only, so at least one of them acts without having won it."


def controller_epoch_grows(case: Case) -> str:
    last = case.events[-1]
    if last.zk_op == "delete":
        return (
            "The next election starts at epoch 1 again, and every broker that has heard of a greater one takes the new "
            "controller for a deposed one."
        )
    if last.controller_epoch is None:
        return "Nobody can win the next election: the epoch to be raised cannot be read."
    before = case.events[0].controller_epoch or 0
    if last.controller_epoch <= before:
        return (
            "Brokers refuse epochs smaller than one that they have heard of, and take two controllers of one epoch "
            f"for the same: after {before} neither can be told from those that were."
        )
    return (
        "An election reads the epoch and writes one more, on condition that nobody has written since. After "
        f"{before} that gives {before + 1} and nothing else."
    )


def stale_controller_fenced(case: Case) -> str:
    first, last = case.events[0], case.events[-1]
    if last.kind == Kind.CONTROL_REQUEST_HANDLED:
        return (
            f"Having accepted epoch {first.controller_epoch}, broker {last.node} knows that the controller of epoch "
            f"{last.controller_epoch} is deposed, and must refuse it (STALE_CONTROLLER_EPOCH): otherwise what a "
            "deposed controller believed overrides what its successor has ordered."
        )
    if len(case.events) == 1:
        return "Without a grant before it nobody can say whether its writer was the controller."
    if case.is_undecided:
        return (
            "Only the leader of a partition may change its ISR without owning the current controller epoch, and no "
            "broker tells whose session that is."
        )
    return (
        f"Only the controller of epoch {first.controller_epoch} may change who leads from then on, and besides it "
        "only the leader its ISR. What a deposed controller writes has to fail, because it demands the version of "
        "/controller_epoch that it has won (KAFKA-6082): two brokers decide about one partition."
    )


def broker_epoch_fenced(case: Case) -> str:
    first, last = case.events[0], case.events[-1]
    if last.kind == Kind.ALTER_PARTITION_HANDLED:
        newer = first.broker_epoch
        if first.peer == last.peer and (last.broker_epoch or 0) < (newer or 0):
            return (
                f"The controller had sent broker {first.peer} a request for its broker epoch {newer}, so it knew "
                "that the leader which proposed this is a life that is over: its view of who is in sync is out of "
                "date."
            )
        return (
            f"The controller had sent broker {first.peer} a request for its broker epoch {newer}, so it knew that "
            "the member has come back as another life since: what its leader saw it catch up with may be lost "
            "(KIP-903)."
        )
    if not succeeded(last):
        return (
            f"Broker epochs are zxids, which grow: {last.broker_epoch} is not older than {first.broker_epoch}. The "
            "controller may see a registration before the broker gets the answer to it. A broker may refuse only "
            "requests for an earlier registration (STALE_BROKER_EPOCH): the controller does not repeat a request that "
            "was refused, so the broker does not learn what it contained."
        )
    if first.kind == Kind.BROKER_REGISTERED and len(case.events) > 1:
        return (
            f"A broker epoch names one registration. What was meant for {last.broker_epoch} was said to what the "
            f"broker was before it registered with {first.broker_epoch}, and must be refused (STALE_BROKER_EPOCH)."
        )
    return (
        f"Broker epoch {last.broker_epoch} is the registration of another process life: what was said to that one is "
        "out of date, and must be refused (STALE_BROKER_EPOCH)."
    )
