"""A network of namespaces with packet rules in force, for tests. Skips, with the reason, where that cannot be made."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from benchmarks.namespaces import SWITCH, Machine, network
from nemesis.interfaces.links import Link
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import NamespaceError
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.docker.packets.rules import PacketNode
from nemesis.support.journal import Journal

BROKERS = ("broker-1", "broker-2")
CLIENTS = ("client-1",)
NAMES = (*BROKERS, *CLIENTS)
PORT = 9092
HEARD_WITHIN_S = 0.15


@cache
def features() -> frozenset[Feature]:
    """What works here; skips the test when it is too little."""
    try:
        result = asyncio.run(kernel.features())
    except NamespaceError as error:
        pytest.skip(f"needs network namespaces, as root has them: {error}")
    if missing := frozenset(Feature) - result:
        pytest.skip(f"needs iptables, tc and ss, and a kernel that can do {', '.join(missing)}")
    return result


class Laboratory:
    """Machines, and the rules between them."""

    def __init__(self, machines: dict[str, Machine], rules: PacketRules) -> None:
        self.machines = machines
        self.rules = rules

    def heard(self, *, count: int = 1) -> set[tuple[str, str]]:
        """Send datagrams from every machine to every other; return who heard of whom at least one."""
        with ExitStack() as stack:
            ears = {
                name: stack.enter_context(machine.datagrams())
                for name, machine in self.machines.items()
            }
            pairs = [(a, b) for a in ears for b in ears if a != b]
            for source, target in pairs * count:
                _send(ears[source], source, self.machines[target])
            return {(source, name) for name, ear in ears.items() for source in _all(ear)}

    def arrivals(self, source: str, target: str, *, count: int) -> list[tuple[int, float]]:
        """Send numbered datagrams; return the numbers that arrive, and how many ms after the first was sent."""
        sender, receiver = self.machines[source], self.machines[target]
        with receiver.datagrams() as ear, sender.datagrams() as mouth:
            begin = time.monotonic()
            for number in range(count):
                _send(mouth, str(number), receiver)
            came: list[tuple[int, float]] = []
            try:
                while True:
                    number = int(ear.recv(64))
                    came.append((number, (time.monotonic() - begin) * 1000))
            except TimeoutError:
                return came

    async def saved(self, name: str) -> str:
        """What iptables and tc say of a machine."""
        namespace = self.machines[name].namespace
        return await namespace.run("iptables-save") + await namespace.run("tc", "qdisc", "show")


def _send(mouth: socket.socket, word: str, target: Machine) -> None:
    with suppress(PermissionError):  # what is dropped on its way out is told to who sends datagrams
        mouth.sendto(word.encode(), (target.host, PORT))


def _all(ear: socket.socket) -> Iterable[str]:
    ear.settimeout(HEARD_WITHIN_S)
    try:
        while True:
            yield ear.recv(64).decode()
    except TimeoutError:
        return


def links(*pairs: tuple[str, str]) -> frozenset[Link]:
    return frozenset(Link(source, target) for source, target in pairs)


@asynccontextmanager
async def laboratory(
    tmp_path: Path, *, without: frozenset[Feature] = frozenset()
) -> AsyncIterator[Laboratory]:
    """Two brokers and a client, ruled; all is cleared in the end."""
    result = await asyncio.to_thread(features)
    journal = Journal.create(tmp_path, directory=tmp_path)
    async with network(NAMES) as machines:
        nodes = {
            name: PacketNode(machine.host, is_container=name in BROKERS, port=PORT)
            for name, machine in machines.items()
        }
        rules = PacketRules(
            nodes,
            pid_of=lambda name: machines[name].pid,
            harness_host=SWITCH,
            features=result - without,
            journal=journal,
            log=tmp_path / "handler.log",
        )
        try:
            for name in BROKERS:
                await rules.reapply(name)
            yield Laboratory(machines, rules)
        finally:
            await rules.clear()
    journal.close()


def play(
    tmp_path: Path,
    scene: Callable[[Laboratory], Awaitable[None]],
    *,
    without: frozenset[Feature] = frozenset(),
) -> None:
    """Run a scene in a laboratory."""

    async def whole() -> None:
        async with laboratory(tmp_path, without=without) as lab:
            await scene(lab)

    features()
    asyncio.run(whole())
    complaints = [log.read_text() for log in tmp_path.glob("*.log")]
    assert complaints in ([], [""])
