"""What this machine lets the runtime do, asked once for each process of the harness."""

from __future__ import annotations

import asyncio
from contextlib import closing
from functools import cache

from nemesis.runtimes.docker.disks.obstacle import find_obstacle
from nemesis.runtimes.docker.engine import connect, require_docker
from nemesis.runtimes.docker.engine_calls import FAILURES, reason
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import NamespaceError
from nemesis.support.errors import MissingRequirement


@cache
def packet_features() -> frozenset[Feature]:
    """Return what the kernel can do to packets; blocks, outside of an event loop.

    Raises ``MissingRequirement`` when there is no engine, or not even a packet can be dropped.
    """
    require_docker()
    try:
        features = asyncio.run(kernel.features())
    except NamespaceError as error:
        raise MissingRequirement(f"the runtime docker cannot work here: {error}") from None
    if Feature.DROP not in features:
        raise MissingRequirement(
            "the runtime docker cannot drop packets here: `iptables` does not work in a network namespace"
        )
    return features


@cache
def disk_obstacle() -> str:
    """Return why brokers cannot have disks of their own here; empty when they can. Blocks for some tenths of a second.

    Raises ``MissingRequirement`` when there is no engine.
    """
    with closing(connect()) as client:
        try:
            return find_obstacle(client.info())
        except FAILURES as error:
            raise MissingRequirement(
                f"the Docker engine does not answer: {reason(error)}"
            ) from None
