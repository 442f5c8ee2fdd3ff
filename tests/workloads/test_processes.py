"""Client processes: what a pause holds, what a kill ends, and what starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.workloads.processes import ClientTable, Gate, Program, held

Walked = list[tuple[float, int]]
"""When which step was taken."""
PAUSES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=5)
"""After how many hundredths of a second the process is paused, and for how many."""


def on_virtual_time(scene: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    loop = SimulationLoop(Schedule(1, 0.0))
    try:
        return loop.run_until_complete(scene())
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()


async def walk(steps: int, walked: Walked) -> None:
    """Take steps in two tasks, with time-outs and errors on the way."""
    child = asyncio.create_task(held(stroll(steps, walked)))
    for number in range(steps):
        walked.append((now(), number))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.sleep(0.04 if number % 2 else 1.0)
    await child


async def stroll(steps: int, walked: Walked) -> None:
    failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failing.set_exception(ValueError())
    with suppress(ValueError):
        await failing
    for number in range(steps):
        await asyncio.sleep(0.03)
        walked.append((now(), 100 + number))


def walked_with(pauses: list[tuple[int, int]]) -> tuple[Walked, list[tuple[float, float]]]:
    """Return the steps of a process under these pauses, and when it was paused."""
    walked: Walked = []
    spans: list[tuple[float, float]] = []

    async def scene() -> None:
        gate = Gate()
        task = asyncio.create_task(held(walk(10, walked), gate))
        for after, lasting in pauses:
            await asyncio.sleep(after / 100 + 0.001)
            gate.close()
            start = now()
            await asyncio.sleep(lasting / 100)
            spans.append((start, now()))
            gate.open()
        await task

    on_virtual_time(scene)
    return walked, spans


@given(PAUSES)
def test_a_process_takes_the_same_steps_whenever_it_is_paused_and_none_meanwhile(
    pauses: list[tuple[int, int]],
) -> None:
    undisturbed, _ = walked_with([])
    walked, spans = walked_with(pauses)
    for is_child in (False, True):
        numbers = [number for _, number in walked if (number >= 100) == is_child]
        assert numbers == [number for _, number in undisturbed if (number >= 100) == is_child]
    assert not [step for step in walked if any(start < step[0] < stop for start, stop in spans)]


def table(program: Callable[[str], Coroutine[Any, Any, None]], *names: str) -> ClientTable:
    def programs() -> Iterator[tuple[str, Program]]:
        for name in names:
            yield name, lambda name=name: program(name)  # type: ignore[misc]

    return ClientTable(programs, groups=["group-0"], leader=lambda _: names[0])


async def forever(_: str) -> None:
    while True:
        await asyncio.sleep(0.1)


def test_a_killed_process_ends_alone_and_starts_again() -> None:
    async def scene() -> None:
        clients = table(forever, "producer-0", "member-0")
        assert clients.names == ["producer-0", "member-0"]
        assert not clients.state("member-0").is_alive
        clients.start_all()
        await asyncio.sleep(1.0)
        steps = clients.state("member-0").steps
        await clients.kill("member-0")
        assert not clients.state("member-0").is_alive
        assert clients.state("producer-0").is_alive
        clients.start("member-0")
        await asyncio.sleep(1.0)
        assert clients.state("member-0").is_alive
        assert clients.state("member-0").steps > steps
        assert await clients.stop() == []

    on_virtual_time(scene)


def test_a_paused_process_can_be_killed_and_stopped() -> None:
    async def scene() -> None:
        clients = table(forever, "member-0", "member-1")
        clients.start_all()
        await asyncio.sleep(0.35)
        for name in clients.names:
            clients.pause(name)
        await asyncio.sleep(1.0)
        state = clients.state("member-0")
        assert state.is_paused
        await clients.kill("member-0")
        assert not clients.state("member-0").is_alive
        clients.start("member-0")
        assert not clients.state("member-0").is_paused
        assert await clients.stop() == []

    on_virtual_time(scene)


def test_a_process_whose_end_is_known_leads_no_group() -> None:
    async def scene() -> None:
        clients = table(forever, "member-0")
        clients.start_all()
        assert clients.group_leader("group-0") == "member-0"
        await clients.kill("member-0")
        assert clients.group_leader("group-0") is None
        await clients.stop()

    on_virtual_time(scene)


def test_a_process_that_fails_is_reported_also_if_it_was_started_again() -> None:
    async def fail(_: str) -> None:
        raise ValueError("broken")

    async def scene() -> list[BaseException]:
        clients = table(fail, "member-0")
        clients.start_all()
        await asyncio.sleep(0.1)
        clients.start("member-0")
        await asyncio.sleep(0.1)
        return await clients.stop()

    assert [str(error) for error in on_virtual_time(scene)] == ["broken", "broken"]


def test_the_operations_of_a_process_that_starts_again_have_new_numbers() -> None:
    permitted: list[tuple[str, int]] = []

    def permits(process: str, step: int) -> bool:
        permitted.append((process, step))
        return True

    async def scene() -> None:
        async def count(name: str) -> None:
            for step in range(1, 1000):
                await asyncio.sleep(0.1)
                numbered(name, step)

        clients = table(count, "member-0")
        numbered = clients.numbered(permits)
        clients.start_all()
        await asyncio.sleep(0.35)
        await clients.kill("member-0")
        clients.start("member-0")
        await asyncio.sleep(0.25)
        await clients.stop()

    on_virtual_time(scene)
    assert permitted == [("member-0", number) for number in range(1, 6)]
