"""Recipes of faults that overlap on purpose, because single faults do not reach some bugs.

A *zombie* is a controller that still acts after its session has ended. It does harm only if it has
something to do at that time, so a broker fails around the moment the controller is cut off, paused
or deposed. Each recipe is a pure seeded function; times are in seconds from the start of the
recipe. Session time-outs of about two seconds are assumed: a killed broker vanishes from
ZooKeeper 2 to 3 s after its death.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from nemesis.faults.base import RESTART_S, DrawRange, Fault
from nemesis.faults.clock import ClockSkew
from nemesis.faults.connections import SlowLink
from nemesis.faults.kill import Kill, KillController
from nemesis.faults.partition import Partition
from nemesis.faults.pause import Pause
from nemesis.faults.selectors import TOUCHED, VOTERS_MAJORITY, VOTERS_MINORITY
from nemesis.faults.session import ExpireSession
from nemesis.faults.stall import StallFollower
from nemesis.faults.stray_requests import TRANSACTION_KEYS, StrayRequests
from nemesis.reference.model import TRANSACTION_STATE_TOPIC_NAME

Steps = Callable[[Random, DrawRange], list[tuple[float, Fault]]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function that draws the faults, and the kinds of faults that it draws."""

    summary: str
    """What happens, in one line."""
    kinds: frozenset[str]
    steps: Steps
    deposes_by_session: bool = False
    """Whether the end of its session deposes the controller, as with ZooKeeper only."""
    has_voters: bool = False
    """Whether it strikes voters of a KRaft quorum."""


def stale_control_requests(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """The controller can no longer be heard by the brokers while it orders an election; it is deposed; then
    its orders arrive.
    """
    duration_s = durations.high_s
    return [
        (
            0.0,
            Partition(
                shape="one-way", selector="controller", direction="mute", duration_s=duration_s
            ),
        ),
        (round(rng.uniform(0.2, 0.6), 2), Kill(selector="bystander", duration_s=duration_s - 1.0)),
        (round(rng.uniform(3.6, 4.4), 2), ExpireSession(selector="controller")),
    ]


def zombie_by_partition(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """The controller loses ZooKeeper only, and a broker dies: leaders still ask the zombie to shrink ISRs."""
    kill_at_s = round(rng.uniform(0.0, 1.5), 2)
    return [
        (
            0.0,
            Partition(
                shape="from-zookeeper",
                selector="controller",
                direction=rng.choice(["mute", "both"]),
                duration_s=durations.draw(rng),
            ),
        ),
        (kill_at_s, Kill(selector="bystander", duration_s=durations.low_s)),
    ]


def zombie_by_pause(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A broker dies; the controller is stopped in the middle of its elections and wakes up deposed."""
    return [
        (0.0, Kill(selector="bystander", duration_s=durations.draw(rng) + 2.0)),
        (0.3, Pause(selector="controller", when="broker-loss", duration_s=durations.low_s)),
    ]


def zombie_by_expiry(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A broker's session ends, and in the middle of the elections that follow the controller's does too. Its successor
    is stopped before it has changed anything: what the old one still writes meets nobody else's change.
    """
    return [
        (0.0, ExpireSession(selector="controller", when="broker-loss")),
        (0.0, Pause(selector="controller", when="new-controller", duration_s=durations.low_s)),
        (round(rng.uniform(0.3, 0.6), 2), ExpireSession(selector="bystander")),
    ]


def lonely_leader(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A leader is cut off from its peers and from ZooKeeper but not from its clients, then another broker
    fails right after it is back.
    """
    duration_s = durations.draw(rng)
    return [
        (
            0.0,
            Partition(
                shape="one-node", selector="leader", zookeeper="majority", duration_s=duration_s
            ),
        ),
        (duration_s + 0.5, KillController(duration_s=durations.low_s)),
    ]


def leader_for_clients_only(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """Clients reach an old leader and none of its rivals, which reach ZooKeeper; right after the heal the rivals lose
    their sessions, so that the old leader leads again while clients still send what they could not deliver.

    The cut outlasts a session by less than two seconds: ``delivery.timeout.ms`` is 6 s where producers have one.
    """
    del durations
    cut_s = round(rng.uniform(2.8, 3.6), 2)
    return [
        (
            0.0,
            Partition(
                shape="with-clients", selector="leader", zookeeper="majority", duration_s=cut_s
            ),
        ),
        (round(cut_s + rng.uniform(0.4, 1.0), 2), ExpireSession(selector="leader")),
        (round(cut_s + rng.uniform(1.2, 1.8), 2), ExpireSession(selector="leader")),
    ]


def leadership_returns(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A follower is stopped until its session has ended. Leaders lose their sessions in turn, so that leadership goes
    from A to B and back to A; then the follower wakes up with a log of two leader epochs ago.
    """
    second_s = round(rng.uniform(3.6, 4.4), 2)
    return [
        (0.0, Pause(selector="follower", duration_s=max(6.0, durations.high_s))),
        (round(rng.uniform(2.4, 2.8), 2), ExpireSession(selector="leader")),
        (second_s, ExpireSession(selector="leader")),
        (round(second_s + rng.uniform(0.8, 1.2), 2), ExpireSession(selector="leader")),
    ]


def clock_moves_while_followers_lag(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A follower's Fetch requests are held, and the wall clock of a leader is moved before its lag time has passed."""
    return [
        (0.0, StallFollower(selector="follower", duration_s=durations.draw(rng))),
        (
            round(rng.uniform(0.2, 1.2), 2),
            ClockSkew(
                selector="leader",
                offset_ms=rng.choice([-3_600_000, -5_000, 5_000, 3_600_000]),
                duration_s=durations.low_s,
            ),
        ),
    ]


def slow_then_dead(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A broker is slow towards its peers, then dies, starts again, and is still slow."""
    slow_s = durations.high_s + RESTART_S
    return [
        (
            0.0,
            SlowLink(
                selector=rng.choice(["leader", "follower", "controller"]),
                peers="brokers",
                delay_ms=rng.choice([150, 400, 900]),
                duration_s=slow_s,
            ),
        ),
        (round(rng.uniform(0.8, 2.5), 2), Kill(selector=TOUCHED, duration_s=durations.low_s / 2)),
    ]


def stalled_then_dead(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A follower stops fetching and leaves its ISRs, or nearly so, then dies and starts again."""
    stall_s = durations.high_s + RESTART_S
    return [
        (0.0, StallFollower(selector="follower", duration_s=stall_s)),
        (round(rng.uniform(1.2, 2.8), 2), Kill(selector=TOUCHED, duration_s=durations.low_s / 2)),
    ]


def registered_late(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """ZooKeeper answers a broker late. Its session ends, and the controller sees its next registration, and acts on it,
    before the broker has got the answer to that registration.

    A round trip takes less than half of a session's time-out: the broker keeps its sessions.
    """
    slow_s = max(6.0, durations.draw(rng))
    return [
        (
            0.0,
            SlowLink(
                selector="bystander",
                peers="zookeeper",
                delay_ms=rng.choice([100, 200, 400]),
                duration_s=slow_s,
            ),
        ),
        (round(rng.uniform(1.8, 2.8), 2), ExpireSession(selector=TOUCHED)),
    ]


def controllers_in_turn(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """Two controllers lose their sessions, one after the other, and the third is killed for much longer than a session:
    brokers that have been the controller have to take the office again.
    """
    second_s = round(rng.uniform(2.0, 3.5), 2)
    return [
        (0.0, ExpireSession(selector="controller")),
        (second_s, ExpireSession(selector="controller")),
        (
            round(second_s + rng.uniform(2.0, 3.5), 2),
            KillController(duration_s=max(9.0, durations.high_s)),
        ),
    ]


def voters_lost(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A minority of the voters dies, and the quorum goes on; later a majority does, and it stands still for a while."""
    minority_s, majority_s = durations.draw(rng), durations.low_s
    return [
        (0.0, Kill(selector=VOTERS_MINORITY, duration_s=minority_s)),
        (
            round(minority_s + RESTART_S + 1.0, 2),
            Kill(selector=VOTERS_MAJORITY, duration_s=majority_s),
        ),
    ]


def successor_dies(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """The active controller is cut off from the others; they elect another one, which dies before the heal."""
    return [
        (0.0, Partition(shape="one-node", selector="controller", duration_s=durations.high_s)),
        (round(rng.uniform(2.5, 3.5), 2), KillController(duration_s=durations.low_s)),
    ]


def voter_behind(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A minority of the voters is dead so long that the others have taken snapshots; it catches up while the controller
    dies.
    """
    del rng
    behind_s = 2 * durations.high_s
    return [
        (0.0, Kill(selector=VOTERS_MINORITY, duration_s=behind_s)),
        (behind_s + 1.5, KillController(duration_s=durations.low_s)),
    ]


def eligible_replicas(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """A follower dies, then a leader while one replica is left in sync: what may lead is known from the eligible leader
    replicas only (KIP-966), and both start again without having been stopped in order.
    """
    leader_s = round(rng.uniform(2.6, 3.4), 2)
    return [
        (0.0, Kill(selector="follower", duration_s=durations.high_s + leader_s)),
        (leader_s, Kill(selector="leader", duration_s=durations.draw(rng))),
    ]


def late_transaction_requests(rng: Random, durations: DrawRange) -> list[tuple[float, Fault]]:
    """EndTxn, AddPartitionsToTxn or WriteTxnMarkers of a transaction coordinator are stopped on their way. Its session
    ends, and they arrive when another broker coordinates, or it does so again in a later epoch.

    The coordinators lead the partitions of the transaction log, of which the first two are struck.
    """
    return [
        (
            0.0,
            StrayRequests(
                requests=rng.choice(list(TRANSACTION_KEYS)),
                fate="overtaken",
                selector=f'leader("{TRANSACTION_STATE_TOPIC_NAME}",{rng.randrange(2)})',
                duration_s=max(5.0, durations.draw(rng)),
            ),
        ),
        (round(rng.uniform(1.0, 2.0), 2), ExpireSession(selector=TOUCHED)),
    ]


CLASSIC: Final = (
    "stale-control-requests",
    "zombie-by-partition",
    "zombie-by-pause",
    "zombie-by-expiry",
    "lonely-leader",
)
"""The recipes of a scenario that names none. The others must be named: each takes time from the rest of a plan."""

RECIPES: Final[Mapping[str, Recipe]] = {
    "stale-control-requests": Recipe(
        "the controller is mute while it orders an election, a new one takes over, then its requests arrive",
        frozenset({"partition", "kill", "expire-session"}),
        stale_control_requests,
        deposes_by_session=True,
    ),
    "zombie-by-partition": Recipe(
        "the controller loses ZooKeeper only, and a broker dies",
        frozenset({"partition", "kill"}),
        zombie_by_partition,
    ),
    "zombie-by-pause": Recipe(
        "a broker dies; the controller is stopped in the middle of its elections, and deposed before it runs again",
        frozenset({"pause", "kill"}),
        zombie_by_pause,
    ),
    "zombie-by-expiry": Recipe(
        "a broker's session ends; during the elections the controller's ends, its successor is paused; no process dies",
        frozenset({"expire-session", "pause"}),
        zombie_by_expiry,
        deposes_by_session=True,
    ),
    "lonely-leader": Recipe(
        "a leader loses its peers and ZooKeeper but not its clients; after it is back the controller dies",
        frozenset({"partition", "kill-controller"}),
        lonely_leader,
    ),
    "leader-for-clients-only": Recipe(
        "clients reach an old leader and none of its rivals; after the heal it leads again while clients retry",
        frozenset({"partition", "expire-session"}),
        leader_for_clients_only,
    ),
    "leadership-returns": Recipe(
        "leadership moves from A to B and back to A while a follower is stopped",
        frozenset({"pause", "expire-session"}),
        leadership_returns,
    ),
    "clock-moves-while-followers-lag": Recipe(
        "a follower stops fetching, and the wall clock of a leader is moved before it notices",
        frozenset({"stall-follower", "clock-skew"}),
        clock_moves_while_followers_lag,
    ),
    "slow-then-dead": Recipe(
        "a broker is slow towards its peers, then it dies and starts again, still slow",
        frozenset({"slow-link", "kill"}),
        slow_then_dead,
    ),
    "stalled-then-dead": Recipe(
        "a follower stops fetching, then it dies and starts again",
        frozenset({"stall-follower", "kill"}),
        stalled_then_dead,
    ),
    "registered-late": Recipe(
        "ZooKeeper answers a broker late; it registers again, and the controller knows of that before the broker does",
        frozenset({"slow-link", "expire-session"}),
        registered_late,
    ),
    "controllers-in-turn": Recipe(
        "two controllers resign, one after the other, and the third is killed for longer than a session",
        frozenset({"expire-session", "kill-controller"}),
        controllers_in_turn,
        deposes_by_session=True,
    ),
    "voters-lost": Recipe(
        "a minority of a KRaft quorum's voters dies, then a majority for a limited time",
        frozenset({"kill"}),
        voters_lost,
        has_voters=True,
    ),
    "successor-dies": Recipe(
        "the controller is cut off, and the one that takes its place dies",
        frozenset({"partition", "kill-controller"}),
        successor_dies,
    ),
    "voter-behind": Recipe(
        "voters of a KRaft quorum are dead while others take snapshots; they catch up while the controller dies",
        frozenset({"kill", "kill-controller"}),
        voter_behind,
        has_voters=True,
    ),
    "eligible-replicas": Recipe(
        "a follower dies, then a leader: who may lead is known from the eligible leader replicas only",
        frozenset({"kill"}),
        eligible_replicas,
    ),
    "late-transaction-requests": Recipe(
        "requests of one kind of transactions stop, their coordinator loses its session, then they arrive",
        frozenset({"stray-requests", "expire-session"}),
        late_transaction_requests,
    ),
}
"""Every recipe by the name that scenarios use; one whose kinds are not all enabled is not drawn."""
