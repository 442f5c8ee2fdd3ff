"""One life of a member: its listeners, its part of the election, and the role that it plays at present.

Every member is looking for a leader, following one, or leading. A role is replaced at once when the reason for it is
gone; the clients of the former role are sent away, as ZooKeeper does. Members promise epochs (``NewEpoch``): whoever
has promised an epoch follows no leader of an older one, so two leaders can never both have a quorum.

The promise of a candidate is given only by members that look for a leader themselves and know nothing newer than it
does, so a leader has everything that was ever committed. ``Canvass`` asks the same without binding anybody: a member
that was cut off comes back without unseating a leader that works. Source: Zab (Junqueira, Reed, Serafini: Zab, 2011),
whose discovery and synchronisation these are, with votes by request instead of by notification.

Each leader-to-follower connection carries everything between the two in order; when it breaks, both begin anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from nemesis.simulation.zookeeper.channel import FROM_PEER, Channel, dial
from nemesis.simulation.zookeeper.following import Following
from nemesis.simulation.zookeeper.log import CommittedLog, MemberDisk
from nemesis.simulation.zookeeper.looking import Looking
from nemesis.simulation.zookeeper.messages import (
    Canvass,
    NewEpoch,
    Opinion,
    Promise,
    Submission,
    Sync,
)
from nemesis.simulation.zookeeper.service import ClientService
from nemesis.simulation.zookeeper.tree import Tree

SESSION_ID_MEMBER_SHIFT = 56
SESSION_ID_LIFE_SHIFT = 32


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
class Place:
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
    """See the module. Members are numbered from 1."""

    def __init__(
        self,
        number: int,
        places: Mapping[int, Place],
        *,
        disk: MemberDisk,
        committed: CommittedLog,
        settings: EnsembleSettings,
        rng: Random,
        wall_clock: Callable[[], int],
    ) -> None:
        self.number = number
        self.places = places
        self.disk = disk
        self.settings = settings
        self.rng = rng
        self.wall_clock = wall_clock
        self.tree = Tree()
        self.peers = [peer for peer in places if peer != number]
        self.majority = len(places) // 2 + 1
        disk.lives += 1
        self.service = ClientService(
            self.tree,
            first_session=(number << SESSION_ID_MEMBER_SHIFT)
            + (disk.lives << SESSION_ID_LIFE_SHIFT),
            session_timeouts_ms=settings.session_timeouts_ms,
        )
        self.role: Role | None = None
        self._committed = committed
        self._applied = 0
        self._end: asyncio.Future[None] | None = None
        self._inbound: dict[Channel, None] = {}

    async def run(self) -> None:
        """Listen and take part until cancelled. Raises OSError when a port is taken."""
        loop = asyncio.get_running_loop()
        place = self.places[self.number]
        self.loop = loop
        clients = await loop.create_server(self.service.accept, place.host, place.client_port)
        peers = await loop.create_server(self._accept_peer, place.host, place.peer_port)
        try:
            self.look()
            self._end = loop.create_future()  # kept: nobody else holds on to the task that waits
            await self._end
        finally:
            clients.close()
            peers.close()
            self._leave_role()
            for channel in self._inbound:
                channel.close()

    @property
    def applied(self) -> int:
        """How many transactions its tree shows."""
        return self._applied

    # Roles

    def look(self) -> None:
        """Look for a leader, having none."""
        self.become(Looking(self))

    def become(self, role: Role) -> None:
        """Play another role from now on."""
        self._leave_role()
        self.role = role
        self.service.serve(role)
        role.begin()

    def _leave_role(self) -> None:
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
        place = self.places[peer]
        source = self.places[self.number].host
        async with asyncio.timeout(self.settings.tick_s):
            return await dial(
                (place.host, place.peer_port), source, FROM_PEER, _ignore, _ignore_loss
            )

    def _accept_peer(self) -> Channel:
        channel = Channel(FROM_PEER, self._receive, self._lost)
        self._inbound[channel] = None
        return channel

    def _lost(self, channel: Channel) -> None:
        self._inbound.pop(channel, None)

    def _receive(self, channel: Channel, message: Any) -> None:
        """A peer that is no leader of ours (yet) speaks."""
        match message:
            case Canvass(position):
                is_yes = self._is_looking and position >= self.disk.position
                channel.send(Opinion(is_yes, self.disk.accepted_epoch))
            case NewEpoch():
                is_given = self._promise(message)
                ends = self.disk.epoch_ends() if is_given else {}
                channel.send(Promise(is_given, self.disk.accepted_epoch, ends))
            case Sync() if message.epoch == self.disk.accepted_epoch:
                self._follow(channel, message)
            case _:
                channel.close()

    @property
    def _is_looking(self) -> bool:
        return isinstance(self.role, Looking)

    def _promise(self, asked: NewEpoch) -> bool:
        disk = self.disk
        if asked.is_elected:
            if asked.epoch < disk.accepted_epoch:
                return False
        elif (
            not self._is_looking
            or asked.epoch <= disk.accepted_epoch
            or asked.position < disk.position
        ):
            return False
        disk.accepted_epoch = asked.epoch
        self.look()  # what follows is from that leader, or its candidacy has failed
        return True

    def _follow(self, channel: Channel, sync: Sync) -> None:
        disk = self.disk
        assert disk.count_to(sync.keep_to) >= self._applied, (
            "a simulated leader lacks what was committed"
        )
        disk.cut_after(sync.keep_to)
        disk.entries.extend(sync.entries)
        disk.current_epoch = sync.epoch
        self._inbound.pop(channel, None)
        self.become(Following(self, channel))


def _ignore(_channel: Channel, _message: Any) -> None:
    """What a peer says before it is asked is of no interest."""


def _ignore_loss(_channel: Channel) -> None:
    """The next question will find out."""
