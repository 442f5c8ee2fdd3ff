"""Counting and resetting connections: the kernel ends the sockets of a namespace that lead to given hosts (``ss -K``).

Each ends at once, as if the other side had reset it, and the other side is told with a reset. The kernel must have
been built with ``INET_DIAG_DESTROY``; distributions' kernels are.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.runtimes.docker.packets.namespace import Namespace


async def count(namespace: Namespace, hosts: Sequence[str]) -> int:
    """Return how many connections there are with these hosts."""
    return await _established(namespace, hosts)


async def reset(namespace: Namespace, hosts: Sequence[str]) -> int:
    """Reset the connections with these hosts; returns how many there were."""
    return await _established(namespace, hosts, "--kill")


async def _established(namespace: Namespace, hosts: Sequence[str], *options: str) -> int:
    if not hosts:
        return 0  # an empty filter would be every connection
    peers = " or ".join(f"dst {host}" for host in hosts)
    listed = await namespace.run(
        *("ss", *options, "--no-header", "--numeric", "--tcp", "state", "established"),
        f"( {peers} )",
    )
    return len(listed.splitlines())
