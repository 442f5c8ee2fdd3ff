"""A run's own network: a bridge with a free subnet, and the clients' addresses on the bridge's device.

The engine makes the device, and takes it away with the network; the clients' addresses go with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from docker import DockerClient
from docker.errors import APIError
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.docker.engine_calls import reason

OVERLAP: Final = "overlap"
ID_DIGITS: Final = 12


def create_network(
    client: DockerClient, described: Mapping[str, Any], marks: Mapping[str, str]
) -> Network | None:
    """Make the network that a compose file describes; None when another network has its subnet.

    Blocks; raises the SDK's errors.
    """
    pools = [IPAMPool(**pool) for pool in described["ipam"]["config"]]
    try:
        return client.networks.create(
            described["name"],
            driver=described["driver"],
            ipam=IPAMConfig(pool_configs=pools),
            labels=dict(marks),
        )
    except APIError as error:
        if OVERLAP in reason(error).lower():
            return None
        raise


def device(network: Network) -> str:
    """Return the name of the bridge's device on the host."""
    return f"br-{str(network.id)[:ID_DIGITS]}"


async def add_addresses(device_name: str, hosts: Iterable[str]) -> None:
    """Let the host own these addresses, too; raises ``RuntimeFailure``."""
    for host in hosts:
        await _ip("address", "add", f"{host}/32", "dev", device_name)


async def _ip(*arguments: str) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            "ip",
            *arguments,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise RuntimeFailure(f"`ip` cannot be run: {error.strerror}") from None
    _, said = await process.communicate()
    if process.returncode:
        words = " ".join(said.decode(errors="replace").split())
        raise RuntimeFailure(f"`ip {' '.join(arguments)}` failed: {words}")
