"""Who leads a partition: pure functions over an assignment, the live brokers and the present state.

One function for each occasion: a leader is gone (*offline*), the replicas are exchanged (*reassign*), the first replica
shall lead (*preferred*), a broker asks to leave (*controlled shutdown*), only a new epoch is wanted (*no-op*).

The order of the assignment always decides. Every new state carries a leader epoch one above the one that it replaces:
``new_leader_and_isr`` is the only place that makes one. Source: kafka.controller.PartitionLeaderElectionAlgorithms and
kafka.controller.Election; KIP-704 for the recovery state after an unclean election. NoOpLeaderSelector of older Kafka
left the epoch alone; what Kafka 3.9 has of it is ``updateLeaderEpoch``, which raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from nemesis.reference.model import NO_LEADER, LeaderAndIsr, LeaderRecoveryState

IsOnline = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """``leader_and_isr`` is None when nobody is eligible."""

    leader_and_isr: LeaderAndIsr | None
    recipients: tuple[int, ...]
    """The replicas to be told."""
    unclean: bool = False


def new_leader_and_isr(
    current: LeaderAndIsr,
    leader: int,
    isr: tuple[int, ...],
    leader_recovery_state: LeaderRecoveryState | None = None,
) -> LeaderAndIsr:
    """Return the state that replaces ``current``, in a new leader epoch; its partition epoch is still the old one."""
    return replace(
        current,
        leader=leader,
        isr=isr,
        leader_epoch=current.leader_epoch + 1,
        leader_recovery_state=(
            current.leader_recovery_state
            if leader_recovery_state is None
            else leader_recovery_state
        ),
    )


def initial_leader_and_isr(assignment: Sequence[int], is_online: IsOnline) -> LeaderAndIsr | None:
    """The first state of a new partition: all live replicas, the first of them leads; None without any."""
    live = tuple(replica for replica in assignment if is_online(replica))
    return LeaderAndIsr(leader=live[0], leader_epoch=0, isr=live) if live else None


def offline_partition_leader_election(
    assignment: Sequence[int],
    current: LeaderAndIsr,
    is_online: IsOnline,
    *,
    unclean_allowed: bool,
    is_leader_recovery_supported: bool,
) -> ElectionResult:
    """Elect for a partition whose leader is gone: the first live replica of the ISR, else, if allowed, of all.

    ``is_leader_recovery_supported``: whether the state may tell that the election was unclean.
    """
    live = tuple(replica for replica in assignment if is_online(replica))
    for replica in live:
        if replica in current.isr:
            isr = tuple(member for member in current.isr if is_online(member))
            return ElectionResult(new_leader_and_isr(current, replica, isr), live)
    if unclean_allowed and live:
        recovery = (
            LeaderRecoveryState.RECOVERING
            if is_leader_recovery_supported
            else LeaderRecoveryState.RECOVERED
        )
        elected = new_leader_and_isr(current, live[0], live[:1], recovery)
        return ElectionResult(elected, live, unclean=True)
    return ElectionResult(None, live)


def reassign_partition_leader_election(
    target_replicas: Sequence[int], current: LeaderAndIsr, is_online: IsOnline
) -> ElectionResult:
    """Elect out of the replicas that a reassignment leads to; the ISR stays, and only they are told."""
    return _lead(
        next((r for r in target_replicas if is_online(r) and r in current.isr), None),
        current,
        target_replicas,
    )


def preferred_replica_leader_election(
    assignment: Sequence[int], current: LeaderAndIsr, is_online: IsOnline
) -> ElectionResult:
    """Let the first replica lead if it is alive and in the ISR, else nobody new; the ISR stays."""
    return _lead(
        next((r for r in assignment[:1] if is_online(r) and r in current.isr), None),
        current,
        assignment,
    )


def controlled_shutdown_leader_election(
    assignment: Sequence[int],
    current: LeaderAndIsr,
    is_online: IsOnline,
    shutting_down: Collection[int],
) -> ElectionResult:
    """Move the leader off the brokers that shut down, and them out of the ISR.

    ``is_online`` counts brokers that are shutting down: they are told, too.
    """
    live = tuple(replica for replica in assignment if is_online(replica))
    for replica in live:
        if replica in current.isr and replica not in shutting_down:
            isr = tuple(member for member in current.isr if member not in shutting_down)
            return ElectionResult(new_leader_and_isr(current, replica, isr), live)
    return ElectionResult(None, live)


def no_op_leader_election(assignment: Sequence[int], current: LeaderAndIsr) -> ElectionResult:
    """Leader and ISR as they are, in the next leader epoch: what was said in the old one no longer counts."""
    return _lead(current.leader, current, assignment)


def _lead(leader: int | None, current: LeaderAndIsr, recipients: Sequence[int]) -> ElectionResult:
    elected = None if leader is None else new_leader_and_isr(current, leader, current.isr)
    return ElectionResult(elected, tuple(recipients))


def remove_from_isr(current: LeaderAndIsr, replica: int) -> LeaderAndIsr:
    """The state after an offline replica left the ISR; the last member stays, and a leader that left is −1."""
    leader = NO_LEADER if current.leader == replica else current.leader
    isr = current.isr
    if len(isr) > 1:
        isr = tuple(member for member in isr if member != replica)
    return new_leader_and_isr(current, leader, isr)
