"""A small network of namespaces on this machine: what containers have, without containers.

Nothing of it touches the machine's own network: the bridge between the nodes is in a namespace, too. Needs root.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from nemesis.runtimes.docker.packets.kernel import scratch_namespace
from nemesis.runtimes.docker.packets.namespace import Namespace

SUBNET = "10.61.0"
SWITCH = "10.61.0.1"
"""An address that no rule names, as the gateway of a Docker network."""
PORT = 9092
CHUNK_BYTES = 65_536
TRANSFER_TIMEOUT_S = 60.0
SILENCE_S = 0.3
RECEIVE_BUFFER_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of the network."""

    name: str
    host: str
    namespace: Namespace

    @property
    def pid(self) -> int:
        """A process in this namespace."""
        return self.namespace.pid

    def listen(self) -> socket.socket:
        """Return a server socket at this node's port."""
        server = self.namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((self.host, PORT))
        server.listen()
        return server

    def datagrams(self) -> socket.socket:
        """Return a socket for datagrams at this node's port, which waits as long as ``SILENCE_S``."""
        receiver = self.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        receiver.bind((self.host, PORT))
        receiver.settimeout(SILENCE_S)
        return receiver

    def connect(self, other: Machine, *, timeout_s: float = 5.0) -> socket.socket:
        """Return a connection with another node; raises OSError."""
        client = self.namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            client.settimeout(timeout_s)
            client.connect((other.host, PORT))
        except OSError:
            client.close()
            raise
        return client


@asynccontextmanager
async def network(
    names: Sequence[str], *, offloads: bool = True
) -> AsyncIterator[dict[str, Machine]]:
    """Nodes with addresses of their own on one bridge.

    ``offloads``: whether the kernel may hand packets on that are larger than the wire allows, as it does by default
    between containers of one machine.
    """
    async with AsyncExitStack() as stack:
        switch = await stack.enter_async_context(scratch_namespace())
        await switch.run("ip", "link", "add", "switch", "type", "bridge")
        await switch.run("ip", "address", "add", f"{SWITCH}/24", "dev", "switch")
        await switch.run("ip", "link", "set", "switch", "up")
        machines = {}
        for number, name in enumerate(names):
            namespace = await stack.enter_async_context(scratch_namespace())
            machines[name] = Machine(name, f"{SUBNET}.{11 + number}", namespace)
            await _attach(machines[name], switch, f"port{number}", offloads=offloads)
        yield machines


async def _attach(machine: Machine, switch: Namespace, port: str, *, offloads: bool) -> None:
    peer = ("type", "veth", "peer", "name", "eth0", "netns", str(machine.pid))
    await switch.run("ip", "link", "add", port, *peer)
    await switch.run("ip", "link", "set", port, "master", "switch", "up")
    there = machine.namespace
    await there.run("ip", "link", "set", "lo", "up")
    await there.run("ip", "address", "add", f"{machine.host}/24", "dev", "eth0")
    await there.run("ip", "link", "set", "eth0", "up")
    if not offloads:
        await there.run("ip", "link", "set", "eth0", "gso_max_segs", "1")


async def transfer(sender: Machine, receiver: Machine, *, size: int) -> float:
    """Send so many bytes over one connection; return the megabytes that arrived per second."""
    return await asyncio.to_thread(_transfer, sender, receiver, size)


def _transfer(sender: Machine, receiver: Machine, size: int) -> float:
    with receiver.listen() as server, sender.connect(receiver) as client:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(TRANSFER_TIMEOUT_S)
            client.settimeout(TRANSFER_TIMEOUT_S)
            begin = time.monotonic()
            sending = threading.Thread(target=client.sendall, args=(bytes(size),))
            sending.start()
            left = size
            while left > 0:
                left -= len(connection.recv(CHUNK_BYTES)) or left
            took_s = time.monotonic() - begin
            sending.join()
    return size / 1e6 / took_s
