"""Events of the controller: its term, its decisions, its writes to ZooKeeper, its requests to brokers.

Writer: the broker of the reference that is the controller (process ``broker-N``, ``node`` N). It sets ``incarnation``.
"""

from __future__ import annotations

from nemesis.history.events import Kind, Word
from nemesis.history.vocabulary.declaring import PartitionView, View, declares


@declares(Kind.CONTROLLER_ELECTED)
class ControllerElected(View, frozen=True, kw_only=True):
    """The broker has become the controller: it has written `/controller` and raised `/controller_epoch`."""

    controller_epoch: int
    zk_version: int
    """The version of `/controller_epoch`."""
    session: int
    zxid: int


@declares(Kind.CONTROLLER_FAILOVER)
class ControllerFailover(View, frozen=True, kw_only=True):
    """The new controller has finished `onControllerFailover`."""

    controller_epoch: int
    live: list[int] | None = None
    """The live brokers, those included that are shutting down; histories of older versions lack them."""


@declares(Kind.BROKER_CHANGE_HANDLED)
class BrokerChangeHandled(View, frozen=True, kw_only=True):
    """The controller has finished what follows from a change of `/brokers/ids`."""

    controller_epoch: int
    live: list[int]
    """The live brokers, those included that are shutting down."""


@declares(Kind.CONTROLLED_SHUTDOWN_HANDLED)
class ControlledShutdownHandled(View, frozen=True, kw_only=True):
    """The controller is about to answer a ControlledShutdown request."""

    controller_epoch: int
    peer: int
    """The broker that is to shut down."""
    broker_epoch: int
    """The broker epoch that the broker sent; −1 is unknown."""
    count: int
    """The number of partitions that the broker still leads."""
    error: Word


@declares(Kind.CONTROLLER_RESIGNED)
class ControllerResigned(View, frozen=True, kw_only=True):
    """The controller has resigned."""

    controller_epoch: int
    """The epoch that it had."""
    reason: Word


@declares(Kind.LEADER_ELECTED)
class LeaderElected(PartitionView, frozen=True, kw_only=True):
    """The controller has committed the state of a partition to ZooKeeper. No broker has received it yet."""

    leader: int
    leader_epoch: int
    isr: list[int]
    partition_epoch: int
    controller_epoch: int
    zxid: int
    replicas: list[int]
    live: list[int]
    strategy: Word


@declares(Kind.ELECTION_ASKED)
class ElectionAsked(PartitionView, frozen=True, kw_only=True):
    """The controller handles an ElectLeaders request that demands an unclean election."""

    controller_epoch: int
    step: Word
    """`unclean` when the controller begins to handle the request, `answered` when it has finished."""


@declares(Kind.ZNODE_ATTEMPT)
class ZnodeAttempt(View, frozen=True, kw_only=True):
    """A fenced write of the controller, or a leader's write of its ISR, is about to be sent to ZooKeeper."""

    path: str
    controller_epoch: int
    zk_op: Word


@declares(Kind.ZNODE_OUTCOME)
class ZnodeOutcome(View, frozen=True, kw_only=True):
    """ZooKeeper has answered such a write, or the connection was lost."""

    path: str
    controller_epoch: int
    error: Word
    """`NONE`, or the error of ZooKeeper."""
    zxid: int | None = None
    zk_version: int | None = None


@declares(Kind.CONTROL_REQUEST_SENT)
class ControlRequestSent(View, frozen=True, kw_only=True):
    """The controller is about to send a control request. Each attempt is an event."""

    api: Word
    peer: int
    """The broker that is to receive the request."""
    controller_epoch: int
    broker_epoch: int
    """The epoch of the receiver, as the request carries it."""


@declares(Kind.ALTER_PARTITION_HANDLED)
class AlterPartitionHandled(PartitionView, frozen=True, kw_only=True):
    """The controller is about to answer an AlterPartition request; one event for each partition of the request."""

    peer: int
    """The leader that proposes the ISR."""
    broker_epoch: int
    """The broker epoch that the leader sent."""
    leader_epoch: int
    """The leader epoch that the leader sent."""
    partition_epoch: int
    """The partition epoch that the leader sent."""
    isr: list[int]
    """The ISR that the leader proposes."""
    isr_epochs: list[int]
    error: Word
    """`NONE` if the ISR is as proposed."""
    zxid: int | None = None
    """The write of the ISR; unset if nothing had to be written."""


@declares(Kind.TRANSITION)
class Transition(PartitionView, frozen=True, kw_only=True):
    """The controller has taken a partition or a replica from one state to another, or refused to."""

    controller_epoch: int
    from_state: Word
    to_state: Word
    replica: int | None = None
    error: Word | None = None
    """Set if the transition is illegal; then nothing changed."""
