"""A network of namespaces with packet rules in force, for tests. Skips, with the reason, where that cannot be made."""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from benchmarks.namespaces import SWITCH, Machine, network
from nemesis.journal import Journal
from nemesis.runtimes.base import Link
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.namespace import NamespaceError
from nemesis.runtimes.docker.packets.packet_rules import PacketRules
from nemesis.runtimes.docker.packets.rules import PacketNode

BROKERS = ("broker-1", "broker-2")
CLIENTS = ("client-1",)
NAMES = (*BROKERS, *CLIENTS)
PORT = 9092
BOUND_S = 10.0
SILENCE_S = 0.15
"""So long is listened for what must not be heard, once all that must be was."""
MISSED_AFTER_S = 2.0


@cache
def features() -> frozenset[Feature]:
    """What works here; skips the test when it is too little."""
    try:
        found = asyncio.run(kernel.features())
    except NamespaceError as error:
        pytest.skip(f"needs network namespaces, as root has them: {error}")
    if missing := frozenset(Feature) - found:
        pytest.skip(f"needs iptables, tc and ss, and a kernel that can do {', '.join(missing)}")
    return found


class Laboratory:
    """Machines, and the rules between them."""

    def __init__(self, machines: dict[str, Machine], rules: PacketRules) -> None:
        self.machines = machines
        self.rules = rules

    def heard(self, expected: AbstractSet[tuple[str, str]] = frozenset()) -> set[tuple[str, str]]:
        """Send a datagram from every machine to every other; return who was heard by whom.

        On a busy machine they take their time: those that are expected are waited for.
        """
        with ExitStack() as stack:
            ears = {
                name: stack.enter_context(machine.datagrams())
                for name, machine in self.machines.items()
            }
            for source, target in permutations(ears, 2):
                _send(ears[source], source, self.machines[target])
            found: set[tuple[str, str]] = set()
            deadline = time.monotonic() + BOUND_S
            while True:
                left_s = SILENCE_S if found >= expected else max(0.0, deadline - time.monotonic())
                ready, _, _ = select.select(ears.values(), [], [], left_s)
                if not ready:
                    return found
                found |= {
                    (ear.recv(64).decode(), name) for name, ear in ears.items() if ear in ready
                }

    async def must_hear(self, expected: AbstractSet[tuple[str, str]]) -> None:
        """Fail unless of these, and of nobody else, a datagram is heard."""
        found = await asyncio.to_thread(self.heard, expected)
        assert found == expected, f"missing {expected - found}, heard too {found - expected}"

    def arrivals(self, source: str, target: str, *, count: int) -> list[tuple[int, float]]:
        """Send numbered datagrams; return the numbers that arrive, and how many ms after the first was sent."""
        sender, receiver = self.machines[source], self.machines[target]
        with receiver.datagrams() as ear, sender.datagrams() as mouth:
            begin = time.monotonic()
            for number in range(count):
                _send(mouth, str(number), receiver)
            came: list[tuple[int, float]] = []
            missing = set(range(count))
            try:
                while True:
                    ear.settimeout(MISSED_AFTER_S if missing else SILENCE_S)
                    number = int(ear.recv(64))
                    missing.discard(number)
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


def links(*pairs: tuple[str, str]) -> frozenset[Link]:
    return frozenset(Link(source, target) for source, target in pairs)


@asynccontextmanager
async def laboratory(
    tmp_path: Path, *, without: frozenset[Feature] = frozenset()
) -> AsyncIterator[Laboratory]:
    """Two brokers and a client, ruled; all is cleared in the end."""
    found = await asyncio.to_thread(features)
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
            features=found - without,
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
