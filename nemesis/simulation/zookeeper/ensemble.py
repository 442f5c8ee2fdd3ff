"""The ensemble as the harness sees it: members by node name, what they agreed on, and a probe of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random

from nemesis.history.zookeeper_log import Transaction
from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.simulation.clock import EPOCH_MS
from nemesis.simulation.zookeeper.channel import FROM_MEMBER, Channel, ask, dial
from nemesis.simulation.zookeeper.leading import Leading
from nemesis.simulation.zookeeper.log import CommittedLog, MemberDisk
from nemesis.simulation.zookeeper.member import EnsembleSettings, Member, MemberEndpoint
from nemesis.simulation.zookeeper.member_process import MemberProcess
from nemesis.simulation.zookeeper.messages import AreYouThere, IAmHere

PEER_PORT_OFFSET = 707
"""From a member's client port to the one for its peers: 2181 and 2888 by custom."""


class SimulatedEnsemble:
    """A standalone server, or an ensemble of three or more."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        rng: Random,
        tick_time_ms: int = 500,
        settings: EnsembleSettings | None = None,
        wall_clocks: Mapping[str, Callable[[], int]] | None = None,
    ) -> None:
        """``addresses`` are ``host:port`` for clients, by node. ``settings`` are taken instead of ``tick_time_ms``.

        ``wall_clocks`` are the members' by node; all are right without them.
        """
        self.connect_string = ",".join(addresses.values())
        self.settings = settings or EnsembleSettings(tick_time_ms=tick_time_ms)
        self._wall_clocks = wall_clocks or dict.fromkeys(addresses, _virtual_wall_clock)
        self._numbers = {node: number for number, node in enumerate(addresses, start=1)}
        self._by_address = {addresses[node]: number for node, number in self._numbers.items()}
        self._endpoints = {
            number: _endpoint(addresses[node]) for node, number in self._numbers.items()
        }
        self._disks = {number: MemberDisk() for number in self._endpoints}
        self._rngs = {number: Random(rng.getrandbits(64)) for number in self._endpoints}
        self._members: dict[int, Member] = {}
        self._committed = CommittedLog()

    async def main(self, node: str) -> None:
        """One incarnation of a member, on the disk of its earlier ones; runs until it is ended from outside."""
        number = self._numbers[node]
        process = MemberProcess(
            number,
            self._endpoints,
            disk=self._disks[number],
            committed=self._committed,
            settings=self.settings,
            rng=self._rngs[number],
            wall_clock=self._wall_clocks[node],
        )
        self._members[number] = process.member
        await process.run()

    def transactions(self) -> list[Transaction]:
        """Return everything that a quorum has committed so far, in zxid order."""
        return list(self._committed.transactions)

    def leaders(self) -> list[str]:
        """Return the members that lead with a quorum, or believe so; one that was killed may be among them."""
        return [
            node
            for node, number in self._numbers.items()
            if (member := self._members.get(number)) is not None
            and isinstance(member.role, Leading)
            and member.role.is_serving
        ]

    def members(self) -> dict[str, ZooKeeperMember]:
        """Return what those say that serve clients, or believe so; one that was killed may be among them."""
        return {
            node: ZooKeeperMember(_mode(member), member.disk.current_epoch, member.service.sessions)
            for node, number in self._numbers.items()
            if (member := self._members.get(number)) is not None
            and member.role is not None
            and member.role.is_serving
        }

    def has_news_for(self, address: str, *, age_s: float) -> bool:
        """Whether a member, named by the ``host:port`` for clients, lacks what was committed that long ago."""
        member = self._members.get(self._by_address[address])
        return member is not None and self._committed.has_news_for(member.applied, age_s)

    async def probe(self, node: str, *, source_host: str | None, timeout_s: float) -> bool:
        """Whether the member's process answers a call from this host in time, be it serving clients or not."""
        endpoint = self._endpoints[self._numbers[node]]
        address = endpoint.host, endpoint.client_port
        channel: Channel | None = None
        try:
            async with asyncio.timeout(timeout_s):
                channel = await dial(
                    address, source_host, FROM_MEMBER, lambda *_: None, lambda _: None
                )
                return isinstance(await ask(channel, AreYouThere()), IAmHere)
        except (OSError, TimeoutError):
            return False
        finally:
            if channel is not None:
                channel.close()


def _endpoint(address: str) -> MemberEndpoint:
    host, _, port = address.rpartition(":")
    return MemberEndpoint(host, int(port), int(port) + PEER_PORT_OFFSET)


def _mode(member: Member) -> str:
    if not member.peers:
        return "standalone"
    return "leader" if isinstance(member.role, Leading) else "follower"


def _virtual_wall_clock() -> int:
    return EPOCH_MS + int(asyncio.get_running_loop().time() * 1000)
