"""What a member of the ensemble is to its roles: its log, its tree, its clients, its peers and the role it plays.

Every member is looking for a leader, following one, or leading. A role is replaced at once when the reason for it is
gone; the clients of the former role are sent away, as ZooKeeper does. Roles know their member, the member knows a role
by its methods alone. ``member_process`` listens, answers peers, and decides which role comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from nemesis.simulation.zookeeper.channel import FROM_PEER, Channel, dial
from nemesis.simulation.zookeeper.log import CommittedLog, MemberDisk
from nemesis.simulation.zookeeper.messages import Submission
from nemesis.simulation.zookeeper.service import ClientService
from nemesis.simulation.zookeeper.tree import Tree

SESSION_ID_MEMBER_SHIFT = 56
SESSION_ID_INCARNATION_SHIFT = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class EnsembleSettings:
    """As in ``zoo.cfg``; limits are counted in ticks. A candidate waits before it asks, to be alone in asking."""

    tick_time_ms: int = 500
    sync_limit: int = 4
    """A silence that long between a leader and its followers ends their relation."""
    init_limit: int = 10
    session_timeouts_ms: tuple[int, int] = (1_000, 60_000)
    election_delay_s: tuple[float, float] = (0.05, 0.25)

    @property
    def tick_s(self) -> float:
        return self.tick_time_ms / 1000


@dataclass(frozen=True, slots=True)
class MemberEndpoint:
    """Where a member listens for clients and for its peers."""

    host: str
    client_port: int
    peer_port: int


class Role(Protocol):
    """Looking, following or leading. ``begin`` and ``end`` are called once each."""

    @property
    def is_serving(self) -> bool: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def submit(self, number: int, session: int, cxid: int, body: Submission) -> None: ...
    def revalidate(self, number: int, session: int) -> None: ...
    def touch(self, session: int) -> None: ...


class Member:
    """See the module. Members are numbered from 1; each is made inside its running loop."""

    def __init__(
        self,
        number: int,
        endpoints: Mapping[int, MemberEndpoint],
        *,
        disk: MemberDisk,
        committed: CommittedLog,
        settings: EnsembleSettings,
        rng: Random,
        wall_clock: Callable[[], int],
        looking: Callable[[Member], Role],
    ) -> None:
        """``looking`` makes the role of a member that has no leader."""
        self.loop = asyncio.get_running_loop()
        self.number = number
        self.endpoints = endpoints
        self.disk = disk
        self.settings = settings
        self.rng = rng
        self.wall_clock = wall_clock
        self.tree = Tree()
        self.peers = [peer for peer in endpoints if peer != number]
        self.majority = len(endpoints) // 2 + 1
        disk.incarnations += 1
        self.service = ClientService(
            self.tree,
            first_session=(number << SESSION_ID_MEMBER_SHIFT)
            + (disk.incarnations << SESSION_ID_INCARNATION_SHIFT),
            session_timeouts_ms=settings.session_timeouts_ms,
        )
        self.role: Role | None = None
        self._committed = committed
        self._applied = 0
        self._looking = looking

    @property
    def applied(self) -> int:
        """How many transactions its tree shows."""
        return self._applied

    # Roles

    def look(self) -> None:
        """Look for a leader, having none."""
        self.become(self._looking(self))

    def become(self, role: Role) -> None:
        """Play another role from now on."""
        self.leave_role()
        self.role = role
        self.service.serve(role)
        role.begin()

    def leave_role(self) -> None:
        """Play no role: the clients are sent away."""
        former, self.role = self.role, None
        self.service.serve(None)
        if former is not None:
            former.end()

    def commit(self, position: int, numbers: dict[int, int]) -> None:
        """Apply the log up to a position; ``numbers`` holds, by zxid, the requests that were submitted here."""
        entries = self.disk.entries
        while self._applied < len(entries) and entries[self._applied].zxid <= position:
            entry = entries[self._applied]
            self._committed.observe(self._applied, entry)
            self._applied += 1
            outcomes = self.tree.apply(entry)
            self.service.applied(entry, numbers.pop(entry.zxid, 0), outcomes)

    # Peers

    async def dial(self, peer: int) -> Channel:
        """Connect to a peer; raises OSError or TimeoutError."""
        endpoint = self.endpoints[peer]
        source = self.endpoints[self.number].host
        async with asyncio.timeout(self.settings.tick_s):
            return await dial(
                (endpoint.host, endpoint.peer_port), source, FROM_PEER, _ignore, _ignore_loss
            )


def _ignore(_channel: Channel, _message: Any) -> None:
    """What a peer says before it is asked is of no interest."""


def _ignore_loss(_channel: Channel) -> None:
    """The next question will find out."""
