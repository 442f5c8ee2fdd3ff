"""The interface between a run and the place where its cluster lives.

Nodes are named ``broker-N`` and ``zookeeper-N``; clients are ``client-N`` and own an address each, so that a link
is always (sender of bytes, receiver of bytes). A runtime that cannot do a thing raises ``FaultUnsupported`` when
it is asked what it supports, before the run starts, never silently during it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from nemesis.history.stored_logs import StoredLog
from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.zookeeper_admin import ZooKeeperAdmin
from nemesis.workloads.kafka.codec import Codec

FETCH_API_KEY = 1
ALTER_PARTITION_API_KEY = 56
CONTROL_API_KEYS = (4, 5, 6)
"""LeaderAndIsr, StopReplica, UpdateMetadata."""


class Capability(StrEnum):
    """What a fault may need of a runtime."""

    CUT = "cut"
    KILL = "kill"
    PAUSE = "pause"
    RESTART = "restart"
    MEMBERSHIP = "membership"
    """Brokers can join and leave."""
    SESSION = "session"
    STALL = "stall"
    ALTER_PARTITION = "alter-partition"
    """Leaders ask the controller for their ISRs, over links that can hold such requests."""
    POWER_CUT = "power-cut"
    TAIL = "tail"
    """What brokers wrote and did not sync can be told from the rest, and damaged."""
    DISK = "disk"
    LOG_DIR = "log-dir"
    """One of a broker's log directories can fail."""
    CLOCK = "clock"
    MEMBER_CLOCK = "member-clock"
    """The wall clocks of the members of an ensemble."""
    ZOOKEEPER = "zookeeper"
    """Members of an ensemble can be killed, paused, cut off, and looked at one by one."""
    SLOW = "slow"
    RESET = "reset"
    PACKETS = "packets"
    """Packets can be lost, doubled, reordered and delayed by unequal times."""
    BANDWIDTH = "bandwidth"


EVERYWHERE = frozenset(
    {
        Capability.CUT,
        Capability.KILL,
        Capability.MEMBERSHIP,
        Capability.PAUSE,
        Capability.RESTART,
        Capability.SESSION,
        Capability.STALL,
        Capability.ALTER_PARTITION,
    }
)
"""What every runtime can do on every machine. The rest needs disks, clocks or links of a kind, or an ensemble."""

Lacks = Mapping[Capability, str]
"""What a runtime cannot do, or not with such brokers, and why: a clause that fits behind a colon. All else it can."""

NO_PACKETS: Final[Lacks] = {
    Capability.PACKETS: "its links carry streams of bytes, not packets",
    Capability.BANDWIDTH: "its links carry bytes at any speed",
}


def capabilities_without(lacks: Lacks) -> frozenset[Capability]:
    """Return what a runtime can do."""
    return frozenset(Capability) - lacks.keys()


class FaultUnsupported(Exception):
    """A runtime lacks a capability that a planned fault needs. Raised before the run starts."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """A direction of bytes. ``api_key`` narrows it to connections whose requests carry that Kafka API key."""

    source: str
    target: str
    api_key: int | None = None


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """What a link did so far, in bytes, both counted at the proxy or the kernel."""

    forwarded_bytes: int
    held_bytes: int


@dataclass(frozen=True, slots=True)
class ZooKeeperMember:
    """What a member of the ensemble says of itself, as ``srvr`` and ``cons`` of a real one do."""

    mode: str
    """``leader``, ``follower`` or ``standalone``."""
    epoch: int
    """Of the leader that it follows, or its own when it leads. A leader that was cut off believes in an older one."""
    sessions: tuple[int, ...]
    """Those that are connected to it, in order."""


class Runtime(Protocol):
    """All coroutines raise ``RuntimeFailure`` (a failure of the harness, never a verdict) when the place breaks."""

    name: str
    lacks: Lacks
    capabilities: frozenset[Capability]
    """All but those that it lacks."""

    async def start(self) -> None:
        """Bring ZooKeeper and every broker up; returns once each broker's port answers."""

    async def stop(self) -> None:
        """End everything that ``start`` began, in any state. Idempotent."""

    @property
    def codec(self) -> Codec:
        """How clients of these brokers write requests and read responses."""

    @property
    def brokers(self) -> list[str]:
        """Those that belong to the cluster at the moment, dead or alive."""

    @property
    def next_broker(self) -> str | None:
        """The name of the next broker that may join; None when there is no address left for one."""

    @property
    def zookeepers(self) -> list[str]: ...
    @property
    def clients(self) -> list[str]: ...

    def client_host(self, client: str) -> str:
        """The source address that this client binds."""

    def bootstrap(self) -> list[Address]:
        """The brokers' advertised addresses."""

    def zookeeper_admin(self) -> ZooKeeperAdmin:
        """The harness's own way to ZooKeeper, past every link rule; to be entered before use."""

    def address(self, node: str) -> Address:
        """The advertised address of a broker or ZooKeeper node (through the links)."""

    def direct_address(self, node: str) -> Address:
        """The address of a broker or ZooKeeper node past every link rule, for the harness's own probes."""

    def direct_source(self, node: str) -> str:
        """The address to bind when calling ``direct_address``, so that no rule is on the way."""

    async def cut(self, links: frozenset[Link]) -> None:
        """Hold all bytes on these directions until ``restore``; connections stay open."""

    async def restore(self, links: frozenset[Link]) -> None:
        """Let the bytes flow again, the held ones first."""

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]: ...

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        """Whether a request from source's address reaches target and its reply comes back in time."""

    async def kill(self, node: str) -> dict[str, Any]:
        """SIGKILL; returns what was measured: ``{"pid": ..., "dead": True}`` once the process is gone."""

    async def terminate(self, node: str, *, grace_s: float) -> dict[str, Any]:
        """SIGTERM, and SIGKILL when it has not ended after the grace.

        Returns what ``kill`` does, and under ``ended_by`` the name of the signal.
        """

    async def restart(self, node: str) -> dict[str, Any]:
        """Start a dead node again on the same data; returns once its port answers."""

    async def add_broker(self, node: str) -> dict[str, Any]:
        """Let ``next_broker`` belong to the cluster from now on, and start it on an empty disk; returns as ``restart``.

        It has the next id, and an address, links, a wall clock, a trace and a log as any other.
        """

    def retire(self, node: str) -> None:
        """Let a dead broker belong to the cluster no more. Its name is not given again; what it recorded stays."""

    async def pause(self, node: str) -> dict[str, Any]:
        """SIGSTOP or the freezer; returns once the kernel says that it is stopped."""

    async def resume(self, node: str) -> dict[str, Any]: ...

    def is_alive(self, node: str) -> bool:
        """Whether the node's process exists (a paused one does)."""

    async def power_cut(self, node: str) -> dict[str, Any]:
        """Kill the node, and let its disk lose what was not synced.

        Returns what ``kill`` does, and under ``lost_bytes``, ``lost_names`` and so on what was lost.
        """

    async def unsynced_bytes(self, node: str) -> int:
        """Return how much of the ends of a broker's logs is not synced."""

    async def corrupt_tail(self, node: str) -> dict[str, Any]:
        """Damage the ends of a dead broker's logs, behind what was synced (``nemesis.support.log_damage``).

        Returns what was done, under ``damaged``, and the ``lost_bytes``.
        """

    async def fill_disk(self, node: str) -> dict[str, Any]:
        """Let the node's disk take no more until ``heal_disk``.

        Returns what a probe of it meets, by operation: ``{"read": None, "write": "ENOSPC", "fsync": None}``.
        """

    async def fail_disk(self, node: str) -> dict[str, Any]:
        """Let every operation on the node's disk fail with EIO until ``heal_disk``; returns as ``fill_disk``."""

    async def fail_log_dir(self, node: str, number: int) -> dict[str, Any]:
        """Let the log directory of that number, counted round, fail with EIO until ``heal_disk``.

        Returns what a probe of it meets, as ``fill_disk``, its path as ``log_dir``, and under ``others`` what is met in
        the others.
        """

    async def heal_disk(self, node: str) -> dict[str, Any]:
        """End all three; returns as ``fill_disk``, and, where they are counted, under ``refused`` the failed calls.

        A broker that has survived a failed disk may be killed: files that it has open stay broken.
        """

    async def skew_clock(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Set the node's wall clock that far from true time, gaining ``drift`` seconds in each second from now on.

        Timers are not touched. With 0 and 0 the clock is right again. Returns what the clock then says:
        ``{"offset_ms": ..., "drift": ...}``.
        """

    async def zookeeper_members(self) -> dict[str, ZooKeeperMember]:
        """Return what the members of the ensemble say that answer and serve clients; the others are left out."""

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        """Let what is sent on these directions from now on take so much longer; 0 ends it."""

    async def connection_ends(self, links: frozenset[Link]) -> int:
        """Return how many ends of connections there are between these nodes: what ``reset`` would meet."""

    async def reset(self, links: frozenset[Link]) -> int:
        """Reset the connections between these nodes; returns how many ends of them there were."""

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        """Treat the packets on these directions so from now on, in place of what was before.

        ``Impairment()`` ends it. Delays add to those of ``delay``.
        """

    async def packet_counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]: ...

    async def throttle(self, node: str, *, rate_kbit_s: int) -> None:
        """Let no more than this leave the node; 0 ends it."""

    async def rate_kbit_s(self, node: str, *, expected_kbit_s: int) -> int:
        """Measure how fast data leaves the node, in kbit/s, by sending some; most exact near what is expected."""

    async def stored_logs(self, node: str) -> list[StoredLog]:
        """Return what the files of a broker have, once the cluster is stopped; raises OSError or ValueError."""

    async def collect(self) -> None:
        """Bring traces, logs and ZooKeeper's transaction log to the run's record, once the cluster is stopped."""


class Unable:
    """Refuses what a runtime cannot do."""

    name: str
    lacks: Lacks

    def _unsupported(self, capability: Capability, what: str) -> FaultUnsupported:
        why = self.lacks[capability]
        return FaultUnsupported(f"the runtime {self.name} cannot {what}: {why}")


class WholeStreams(Unable):
    """The part of a runtime whose links carry bytes in their order, and know no packets."""

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        raise self._unsupported(
            Capability.PACKETS, f"treat the packets of {len(links)} links as {impairment}"
        )

    async def packet_counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        raise self._unsupported(Capability.PACKETS, f"count the packets of {len(links)} links")

    async def throttle(self, node: str, *, rate_kbit_s: int) -> None:
        raise self._unsupported(
            Capability.BANDWIDTH, f"limit the bandwidth of {node} to {rate_kbit_s} kbit/s"
        )

    async def rate_kbit_s(self, node: str, *, expected_kbit_s: int) -> int:
        raise self._unsupported(
            Capability.BANDWIDTH, f"measure whether {node} sends {expected_kbit_s} kbit/s"
        )


class SharedMachine(Unable):
    """The part of a runtime whose nodes share a machine with the harness: it refuses to touch what belongs to both."""

    async def zookeeper_members(self) -> dict[str, ZooKeeperMember]:
        raise self._unsupported(Capability.ZOOKEEPER, "tell the members of an ensemble apart")

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        raise self._unsupported(Capability.SLOW, f"slow {len(links)} links down by {delay_ms} ms")

    async def connection_ends(self, links: frozenset[Link]) -> int:
        raise self._unsupported(Capability.RESET, f"count connections on {len(links)} links")

    async def reset(self, links: frozenset[Link]) -> int:
        raise self._unsupported(Capability.RESET, f"reset connections on {len(links)} links")


class RuntimeFailure(Exception):
    """The runtime itself broke (a process did not start, a proxy died): the harness fails, the verdict does not."""


class NodeExited(RuntimeFailure):
    """A node that was started has exited by itself. During a run that is for the history to tell, not the end of it."""


class FaultLost(RuntimeFailure):
    """What carried out a fault in force has failed, so it is not known what the fault was.

    The run goes on and is ``unknown``: the fault's heal is recorded as not verified, with this sentence.
    """
