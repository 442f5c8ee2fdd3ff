"""What this machine's kernel and tools can do to packets, found out by doing it in a scratch namespace.

Modules may be missing, compiled in, or loaded on demand, so nothing but a try tells. The whole takes some tenths of a
second and leaves nothing behind: the namespace ends with its only process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from enum import StrEnum
from random import Random
from typing import Final

from nemesis.interfaces.network import BandwidthLimits, Connections, Delays, RequestLinks
from nemesis.interfaces.packets import Packets
from nemesis.interfaces.runtime import Missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.docker.packets import bandwidth, connections
from nemesis.runtimes.docker.packets.chain import RESTORE
from nemesis.runtimes.docker.packets.handler import Station
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError
from nemesis.runtimes.docker.packets.rules import api_key_match
from nemesis.runtimes.docker.packets.shaping import Lane, Tally

LOOPBACK = "127.0.0.1"
QUEUE = 1
START_TIMEOUT_S = 5.0
POLL_INTERVAL_S = 0.01


class Feature(StrEnum):
    """A thing that a kernel may lack."""

    DROP = "drop"
    """iptables in the namespace of another process, with comments. Without it nothing works."""
    U32 = "u32"
    """Rules that look into the payload."""
    LOSS = "loss"
    QUEUE = "queue"
    BANDWIDTH = "bandwidth"
    RESET = "reset"


_NAMES: Final[Mapping[Feature, str]] = {
    Feature.DROP: "iptables in network namespaces",
    Feature.U32: "the match u32",
    Feature.LOSS: "the match statistic",
    Feature.QUEUE: "the target NFQUEUE",
    Feature.BANDWIDTH: "the queue tbf",
    Feature.RESET: "the closing of other processes' sockets",
}
_NEEDS: Final[Mapping[type, Sequence[tuple[Feature, ...]]]] = {
    RequestLinks: ((Feature.DROP,), (Feature.U32, Feature.QUEUE)),
    Delays: ((Feature.DROP,), (Feature.QUEUE,)),
    Connections: ((Feature.RESET,),),
    Packets: ((Feature.DROP,), (Feature.QUEUE,), (Feature.LOSS,)),
    BandwidthLimits: ((Feature.BANDWIDTH,),),
}
"""By part of a runtime: one feature of each group is needed."""

_RULES = {
    Feature.DROP: '-s 192.0.2.1 -m mark --mark 1 -m comment --comment "nemesis:a>b:held" -j DROP',
    Feature.U32: f"-p tcp --dport 1 -m u32 --u32 {api_key_match(1)} -j DROP",
    Feature.LOSS: "-m statistic --mode random --probability 0.5 -j DROP",
    Feature.QUEUE: f"-s 192.0.2.1 -j NFQUEUE --queue-num {QUEUE}",
}


async def features() -> frozenset[Feature]:
    """Return what works; raises ``NamespaceError`` when no namespace can be made (this needs root)."""
    collected = set()
    async with scratch_namespace() as namespace:
        await namespace.run("ip", "link", "set", "lo", "up")
        for feature, rule in _RULES.items():
            table = f"*filter\n-A INPUT {rule}\nCOMMIT\n*filter\n-F INPUT\nCOMMIT\n"
            if await _works(namespace, table):
                collected.add(feature)
        if not await asyncio.to_thread(_can_queue, namespace):
            collected.discard(Feature.QUEUE)
        if await _can_limit(namespace):
            collected.add(Feature.BANDWIDTH)
        if await _can_reset(namespace):
            collected.add(Feature.RESET)
    return frozenset(collected)


def missing(result: frozenset[Feature]) -> Missing:
    """Return the parts of a runtime that need a feature which was not found. Dropping packets is required anyway."""
    return {
        part: Unsupported(f"this kernel lacks {' and '.join(lacking)}")
        for part, needs in _NEEDS.items()
        if (lacking := [_readable(group) for group in needs if result.isdisjoint(group)])
    }


def _readable(group: Iterable[Feature]) -> str:
    return " or ".join(_NAMES[feature] for feature in group)


@asynccontextmanager
async def scratch_namespace() -> AsyncIterator[Namespace]:
    """A network namespace of our own with nothing in it; raises ``NamespaceError``."""
    try:
        keeper = await asyncio.create_subprocess_exec(
            *("unshare", "--net", "cat"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise NamespaceError(f"no network namespace can be made: {error}") from None
    assert keeper.stdin is not None
    try:
        namespace = await _namespace_of(keeper)
        try:
            yield namespace
        finally:
            namespace.close()
    finally:
        keeper.stdin.close()
        await keeper.wait()


async def _namespace_of(keeper: asyncio.subprocess.Process) -> Namespace:
    """Wait until the process has left this machine's namespace."""
    deadline = asyncio.get_running_loop().time() + START_TIMEOUT_S
    while True:
        try:
            return Namespace(keeper.pid)
        except NamespaceError:
            if keeper.returncode is not None:
                assert keeper.stderr is not None
                said = (await keeper.stderr.read()).decode(errors="replace").strip()
                raise NamespaceError(f"no network namespace can be made: {said}") from None
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(POLL_INTERVAL_S)


async def _works(namespace: Namespace, table: str) -> bool:
    try:
        await namespace.run(*RESTORE, stdin=table)
    except NamespaceError:
        return False
    return True


def _can_queue(namespace: Namespace) -> bool:
    """A kernel may know the rule and have nobody who hands the packets over."""
    try:
        station = Station(namespace.path)
    except OSError:
        return False
    try:
        station.open_lane(QUEUE, Lane(Random(0), Tally()))
    except OSError:
        return False
    finally:
        station.close()
    return True


async def _can_limit(namespace: Namespace) -> bool:
    try:
        await bandwidth.limit(namespace, LOOPBACK, rate_kbit_s=1_000)
        await bandwidth.limit(namespace, LOOPBACK, rate_kbit_s=0)
    except NamespaceError:
        return False
    return True


async def _can_reset(namespace: Namespace) -> bool:
    with ExitStack() as stack:
        server = stack.enter_context(namespace.socket(socket.AF_INET, socket.SOCK_STREAM))
        client = stack.enter_context(namespace.socket(socket.AF_INET, socket.SOCK_STREAM))
        server.bind((LOOPBACK, 0))
        server.listen()
        client.connect(server.getsockname())
        try:
            return await connections.reset(namespace, [LOOPBACK]) > 0
        except NamespaceError:
            return False
