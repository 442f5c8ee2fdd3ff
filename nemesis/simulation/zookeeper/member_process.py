"""One incarnation of a member: it listens for clients and peers, takes part in elections, and changes its role.

Members promise epochs (``NewEpoch``): a member that has promised an epoch follows no leader of an older one, so two
leaders can never both have a quorum.

A member gives its promise to a candidate only while it looks for a leader itself and knows nothing newer than the
candidate does, so a leader has everything that was ever committed. ``Canvass`` asks the same without binding anybody:
a member that was cut off comes back without unseating a leader that works. Source: Zab (Junqueira, Reed, Serafini:
Zab, 2011), whose discovery and synchronisation these are, with votes by request instead of by notification.

Each leader-to-follower connection carries everything between the two in order; when it breaks, both begin again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from nemesis.simulation.zookeeper.channel import FROM_PEER, Channel
from nemesis.simulation.zookeeper.following import Following
from nemesis.simulation.zookeeper.log import CommittedLog, MemberDisk
from nemesis.simulation.zookeeper.looking import Looking
from nemesis.simulation.zookeeper.member import EnsembleSettings, Member, MemberEndpoint
from nemesis.simulation.zookeeper.messages import Canvass, NewEpoch, Opinion, Promise, Sync


class MemberProcess:
    """See the module. Made inside a running loop; ``run`` once."""

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
    ) -> None:
        self.member = Member(
            number,
            endpoints,
            disk=disk,
            committed=committed,
            settings=settings,
            rng=rng,
            wall_clock=wall_clock,
            looking=Looking,
        )
        self._end: asyncio.Future[None] | None = None
        self._inbound: dict[Channel, None] = {}

    async def run(self) -> None:
        """Listen and take part until cancelled. Raises OSError when a port is taken."""
        member = self.member
        loop, endpoint = member.loop, member.endpoints[member.number]
        clients = await loop.create_server(
            member.service.accept, endpoint.host, endpoint.client_port
        )
        peers = await loop.create_server(self._accept_peer, endpoint.host, endpoint.peer_port)
        try:
            member.look()
            self._end = loop.create_future()  # kept: nothing else holds the task that waits
            await self._end
        finally:
            clients.close()
            peers.close()
            member.leave_role()
            for channel in self._inbound:
                channel.close()

    def _accept_peer(self) -> Channel:
        channel = Channel(FROM_PEER, self._receive, self._lost)
        self._inbound[channel] = None
        return channel

    def _lost(self, channel: Channel) -> None:
        self._inbound.pop(channel, None)

    def _receive(self, channel: Channel, message: Any) -> None:
        """Answer a peer that this member does not follow (yet)."""
        disk = self.member.disk
        match message:
            case Canvass(position):
                is_yes = self._is_looking and position >= disk.position
                channel.send(Opinion(is_yes, disk.accepted_epoch))
            case NewEpoch():
                is_given = self._promise(message)
                ends = disk.epoch_ends() if is_given else {}
                channel.send(Promise(is_given, disk.accepted_epoch, ends))
            case Sync() if message.epoch == disk.accepted_epoch:
                self._follow(channel, message)
            case _:
                channel.close()

    @property
    def _is_looking(self) -> bool:
        return isinstance(self.member.role, Looking)

    def _promise(self, asked: NewEpoch) -> bool:
        disk = self.member.disk
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
        self.member.look()  # what follows is from that leader, or its candidacy has failed
        return True

    def _follow(self, channel: Channel, sync: Sync) -> None:
        member, disk = self.member, self.member.disk
        assert disk.count_to(sync.keep_to) >= member.applied, (
            "a simulated leader lacks what was committed"
        )
        disk.cut_after(sync.keep_to)
        disk.entries.extend(sync.entries)
        disk.current_epoch = sync.epoch
        self._inbound.pop(channel, None)
        member.become(Following(member, channel))
