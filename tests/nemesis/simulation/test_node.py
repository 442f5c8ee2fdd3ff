"""Kill, pause and resume of nodes that share one thread."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.node import Exit, Node


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    loop = SimulationLoop()
    yield loop
    loop.close()


@pytest.fixture
def node(loop: SimulationLoop) -> Node:
    return Node(loop, "broker-0", "10.0.0.1")


class Ticker:
    """Ticks every second; notes ticks, and whether anything ran at the end."""

    def __init__(self) -> None:
        self.ticks: list[float] = []
        self.ended: list[object] = []

    async def run(self) -> None:
        helper = asyncio.create_task(self._wait())
        try:
            while True:
                self.ticks.append(asyncio.get_running_loop().time())
                await asyncio.sleep(1)
        finally:
            incarnation = INCARNATION.get()
            self.ended.append(incarnation is None or not incarnation.is_dead)
            helper.cancel()

    async def _wait(self) -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            incarnation = INCARNATION.get()
            self.ended.append(incarnation is None or not incarnation.is_dead)


def test_what_is_in_line_when_a_life_is_stopped_does_not_run(
    loop: SimulationLoop, node: Node
) -> None:
    ticker = Ticker()

    async def stop_before_the_first_step() -> None:
        node.start(ticker.run)
        node.pause()
        await asyncio.sleep(1)
        assert ticker.ticks == []
        node.resume()
        node.kill()
        await asyncio.sleep(1)

    loop.run_until_complete(stop_before_the_first_step())
    assert ticker.ticks == []


def test_a_kill_runs_nothing_more(loop: SimulationLoop, node: Node) -> None:
    ticker = Ticker()
    incarnation = node.start(ticker.run)
    loop.run_until_complete(asyncio.sleep(2.5))
    node.kill()
    assert incarnation.is_dead
    assert not node.is_alive
    assert node.exit is None
    loop.run_until_complete(asyncio.sleep(10))
    gc.collect()
    assert ticker.ticks == [0, 1, 2]
    assert ticker.ended == []


def test_the_end_of_the_simulation_disposes_of_the_dead_with_their_life_known_as_dead(
    loop: SimulationLoop, node: Node
) -> None:
    ticker, survivor = Ticker(), Ticker()
    node.start(ticker.run)
    Node(loop, "broker-1", "10.0.0.2").start(survivor.run)
    loop.run_until_complete(asyncio.sleep(1.5))
    node.kill()
    loop.close()
    assert ticker.ended == [False, False]
    assert survivor.ended == [False, False]


def test_death_is_told_outside_of_the_life_in_order(loop: SimulationLoop, node: Node) -> None:
    reported: list[object] = []
    incarnation = node.start(Ticker().run)
    for name in ("first", "second"):
        incarnation.on_death(lambda name=name: reported.append((name, INCARNATION.get())))  # type: ignore[misc]
    loop.run_until_complete(asyncio.sleep(1))
    node.kill()
    node.kill()
    assert reported == [("first", None), ("second", None)]


def test_a_node_lives_again(loop: SimulationLoop, node: Node) -> None:
    first, second = Ticker(), Ticker()
    node.start(first.run)
    loop.run_until_complete(asyncio.sleep(1.5))
    node.kill()
    assert node.start(second.run).number == 2
    loop.run_until_complete(asyncio.sleep(1))
    assert (first.ticks, second.ticks) == ([0, 1], [1.5, 2.5])
    with pytest.raises(RuntimeError, match="runs already"):
        node.start(second.run)


def test_a_paused_node_catches_up_when_resumed(loop: SimulationLoop, node: Node) -> None:
    ran: list[tuple[str, float]] = []

    async def main() -> None:
        for name, delay in (("b", 2.0), ("a", 1.0), ("c", 9.0)):
            loop.call_later(delay, lambda name=name: ran.append((name, loop.time())))
        await asyncio.sleep(100)

    node.start(main)
    loop.run_until_complete(asyncio.sleep(0.5))
    node.pause()
    loop.run_until_complete(asyncio.sleep(4.5))
    assert ran == []
    assert node.is_alive
    node.resume()
    loop.run_until_complete(asyncio.sleep(10))
    assert ran == [("a", 5.0), ("b", 5.0), ("c", 9.0)]


def test_a_paused_node_can_be_killed(loop: SimulationLoop, node: Node) -> None:
    ticker = Ticker()
    node.start(ticker.run)
    loop.run_until_complete(asyncio.sleep(0.5))
    node.pause()
    node.kill()
    loop.run_until_complete(asyncio.sleep(5))
    assert ticker.ticks == [0]
    for change in (node.pause, node.resume):
        with pytest.raises(RuntimeError, match="does not run"):
            change()


def test_main_that_ends_takes_the_whole_process_with_it(loop: SimulationLoop, node: Node) -> None:
    helper = Ticker()

    async def main() -> None:
        asyncio.create_task(helper.run())  # noqa: RUF006
        await asyncio.sleep(1.5)

    node.start(main)
    loop.run_until_complete(asyncio.sleep(5))
    assert node.exit == Exit(None, 1.5)
    assert helper.ticks == [0, 1]


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(1)])
def test_an_error_in_main_is_the_exit(
    loop: SimulationLoop, node: Node, error: BaseException
) -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise error

    node.start(main)
    loop.run_until_complete(asyncio.sleep(5))
    assert node.exit == Exit(error, 1)
    assert not node.is_alive


def test_system_exit_anywhere_ends_the_process(loop: SimulationLoop, node: Node) -> None:
    ticker = Ticker()

    def leave() -> None:
        raise SystemExit(3)

    async def main() -> None:
        loop.call_later(1.5, leave)
        await ticker.run()

    node.start(main)
    loop.run_until_complete(asyncio.sleep(5))
    assert node.exit is not None
    assert isinstance(node.exit.error, SystemExit)
    assert ticker.ticks == [0, 1]


def test_a_life_may_be_killed_from_within(loop: SimulationLoop, node: Node) -> None:
    steps: list[str] = []

    async def main() -> None:
        loop.call_soon(lambda: steps.append("queued behind"))
        node.kill()
        steps.append("same callback")
        await asyncio.sleep(0)
        steps.append("after the next await")

    node.start(main)
    loop.run_until_complete(asyncio.sleep(1))
    assert steps == ["same callback"]
