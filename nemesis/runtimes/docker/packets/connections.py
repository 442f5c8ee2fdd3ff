"""Resetting connections: the kernel ends the sockets of a namespace that are connected to given hosts (``ss -K``).

Each ends at once, as if the other side had reset it, and the other side is told with a reset. The kernel must have
been built with ``INET_DIAG_DESTROY``; distributions' kernels are.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.runtimes.docker.packets.namespace import Namespace


async def reset(namespace: Namespace, hosts: Sequence[str]) -> int:
    """Reset the connections with these hosts; returns how many there were."""
    if not hosts:
        return 0  # an empty filter would be every connection
    peers = " or ".join(f"dst {host}" for host in hosts)
    ended = await namespace.run(
        *("ss", "--kill", "--no-header", "--numeric", "--tcp", "state", "established"),
        f"( {peers} )",
    )
    return len(ended.splitlines())
