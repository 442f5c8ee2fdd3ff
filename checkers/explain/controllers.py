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
            f"Brokers distinguish controllers only by their epoch. If two brokers have won epoch {epoch}, the others "
            "cannot know which of the two is the newer controller."
        )
    if len(acts) < len(case.events):
        whose = (
            "The two sessions are not one broker's."
            if acts[-1].node is None
            else f"That session is not one of broker {acts[-1].node}."
        )
        return (
            f"{whose} Brokers distinguish controllers only by their epoch. So they obey a broker that uses epoch "
            f"{epoch} without having won it."
        )
    if len(acts) == 1 and case.is_undecided:
        return (
            f"ZooKeeper's log does not show who won epoch {epoch}. But it ends with a smaller epoch, so the missing "
            "part may show it."
        )
    if len(acts) == 1:
        return (
            f"ZooKeeper's log has greater epochs and not epoch {epoch}. So no broker has won this epoch, and none "
            "may use it."
        )
    if acts[0].node == acts[1].node:
        return (
            "One process wins an epoch. After a restart, a broker must win a new epoch. Here the new process uses "
            "the epoch of the old one."
        )
    return f"Only one broker can win epoch {epoch}, so at least one of the two uses it without having won it."


def controller_epoch_grows(case: Case) -> str:
    last = case.events[-1]
    if last.zk_op == "delete":
        return (
            "The next election begins with epoch 1 again. Brokers that know a greater epoch then refuse the new "
            "controller as an old one."
        )
    if last.controller_epoch is None:
        return "No broker can win the next election, because it cannot read the epoch that it must increase."
    before = case.events[0].controller_epoch or 0
    if last.controller_epoch <= before:
        return (
            "Brokers refuse an epoch that is smaller than one they know, and cannot distinguish two controllers with "
            f"the same epoch. So the epoch after {before} must be greater."
        )
    return (
        "An election reads the epoch and writes the next number, unless another broker has written it meanwhile. "
        f"After {before} that is always {before + 1}."
    )


def stale_controller_fenced(case: Case) -> str:
    first, last = case.events[0], case.events[-1]
    if last.kind == Kind.CONTROL_REQUEST_HANDLED:
        return (
            f"Broker {last.node} had accepted epoch {first.controller_epoch}, so it knows that the controller of "
            f"epoch {last.controller_epoch} is no longer controller. It must refuse its requests "
            "(STALE_CONTROLLER_EPOCH). Otherwise an old controller overrides its successor."
        )
    if len(case.events) == 1:
        return (
            "The log does not show which broker had won a controller epoch before, so it is not known whether the "
            "writer was the controller."
        )
    if case.is_undecided:
        return (
            "Without owning the current controller epoch, only the leader may change the ISR of its partition. It is "
            "not known to which broker this session belongs."
        )
    return (
        f"From then on, only the controller of epoch {first.controller_epoch} may change the leader of a partition. "
        "Each controller's write must name the version of /controller_epoch that it has won, so the write of an old "
        "controller must fail (KAFKA-6082). Here two brokers decide about one partition."
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
