"""Kills and pauses between two actions of a process, and what a node's own errors come to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from nemesis.history.events import Kind
from nemesis.simulation.disk import SimulatedDisk
from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.node import Node
from nemesis.simulation.node_logs import node_logs


class Writer:
    """A node that tells and writes ten lines without waiting, then waits."""

    def __init__(self) -> None:
        self.loop = SimulationLoop()
        self.node = Node(self.loop, "broker-1", "10.0.1.1")
        self.disk = SimulatedDisk()
        self.record = MemoryRecord(self.loop.clock_ns)
        self.turns = 0

    async def main(self) -> None:
        incarnation = INCARNATION.get()
        assert incarnation is not None
        disk, tracer = self.disk.fenced(incarnation), self.record.tracer("broker-1", 1, incarnation)
        while True:
            await asyncio.sleep(1)
            self.turns += 1
            for number in range(10):
                disk.append("log", f"{number}".encode())
                tracer.event(Kind.METADATA_UPDATED, controller_epoch=1, peer=1, count=number)

    def run(self, strike: Callable[[], None], actions: int) -> None:
        """Strike within the first turn, and look again some seconds later."""

        async def scene() -> None:
            incarnation = self.node.start(self.main)
            await asyncio.sleep(0.5)
            incarnation.strike_after(actions, strike)
            await asyncio.sleep(5)

        self.loop.run_until_complete(scene())

    def outside(self) -> tuple[int, int]:
        """How many lines are on the disk, and how many were told."""
        data = self.disk.read("log", 0, 1000) if self.disk.exists("log") else b""
        return len(data), len(self.record.entries)


@pytest.mark.parametrize(
    ("actions", "left"), [(0, (0, 0)), (1, (1, 0)), (2, (1, 1)), (7, (4, 3)), (19, (10, 9))]
)
def test_a_kill_comes_between_two_actions(actions: int, left: tuple[int, int]) -> None:
    writer = Writer()
    writer.run(writer.node.kill, actions)
    assert writer.outside() == left
    assert not writer.node.is_alive
    writer.loop.close()
    assert writer.outside() == left


def test_a_pause_in_a_turn_lets_the_next_one_wait() -> None:
    writer = Writer()
    writer.run(writer.node.pause, 3)
    assert writer.turns == 1
    assert writer.node.is_alive
    writer.loop.close()


def test_a_strike_that_never_comes_changes_nothing() -> None:
    writer = Writer()
    writer.run(writer.node.kill, 10_000)
    assert writer.turns == 5
    assert writer.node.is_alive
    writer.loop.close()


def test_an_error_that_a_node_survives_is_told() -> None:
    async def main() -> None:
        try:
            raise KeyError("partition")
        except KeyError:
            logging.getLogger("nemesis.reference.somewhere").exception("request failed")
        logging.getLogger("nemesis.reference.somewhere").error("a plain complaint")
        await asyncio.sleep(10)

    async def scene() -> None:
        node.start(main)
        await asyncio.sleep(1)

    loop = SimulationLoop()
    node = Node(loop, "broker-1", "10.0.1.1")
    with node_logs(logging.ERROR) as logs:
        loop.run_until_complete(scene())
        loop.close()
    assert len(logs.errors) == 1
    assert "broker-1" in logs.errors[0]
    assert "KeyError('partition')" in logs.errors[0]
    assert len(logs.lines["broker-1"]) == 2
