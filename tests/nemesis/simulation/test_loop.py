"""The virtual-time loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from nemesis.simulation.incarnation import INCARNATION
from nemesis.simulation.loop import DeadlockError, LivelockError, Schedule, SimulationLoop
from nemesis.simulation.node import Node


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    loop = SimulationLoop()
    yield loop
    loop.close()


def test_sleeping_moves_virtual_time_only(loop: SimulationLoop) -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert loop.run_until_complete(main()) == 3600


def test_equal_deadlines_fire_in_the_order_they_were_set(loop: SimulationLoop) -> None:
    fired: list[int] = []
    for number in range(20):
        loop.call_at(1.0, fired.append, number)
    loop.run_until_complete(asyncio.sleep(2))
    assert fired == list(range(20))


def test_a_cancelled_timer_neither_fires_nor_moves_time(loop: SimulationLoop) -> None:
    fired: list[float] = []
    loop.call_later(3, lambda: fired.append(loop.time()))

    async def main() -> float:
        timers = [loop.call_later(50 + n, pytest.fail, "cancelled") for n in range(5000)]
        for timer in timers:
            timer.cancel()
            timer.cancel()
        await asyncio.sleep(1)
        return loop.time()

    assert loop.run_until_complete(main()) == 1
    loop.run_until_complete(asyncio.sleep(9))
    assert fired == [3]


def test_clock_ns_is_never_the_same_twice(loop: SimulationLoop) -> None:
    first = [loop.clock_ns() for _ in range(3)]
    assert first == [0, 1, 2]
    loop.run_until_complete(asyncio.sleep(1))
    assert loop.clock_ns() == 1_000_000_000


def test_timeouts_and_task_groups_work(loop: SimulationLoop) -> None:
    async def main() -> str:
        try:
            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(1))
                group.create_task(asyncio.sleep(1000))
        except TimeoutError:
            return f"timed out at {loop.time()}"
        return "not timed out"

    assert loop.run_until_complete(main()) == "timed out at 5.0"


def test_waiting_for_nothing_is_a_deadlock_that_names_who_waits(loop: SimulationLoop) -> None:
    async def wait_for_nobody() -> None:
        await loop.create_future()

    with pytest.raises(DeadlockError, match=r"harness: godot in .*wait_for_nobody"):
        loop.run_until_complete(loop.create_task(wait_for_nobody(), name="godot"))


def test_spinning_is_a_livelock(loop: SimulationLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nemesis.simulation.loop.LIVELOCK_CALLBACKS", 1000)

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="1000 callbacks"):
        loop.run_until_complete(spin())


def test_an_exception_in_a_callback_of_the_harness_ends_the_run(loop: SimulationLoop) -> None:
    def fail() -> None:
        raise ValueError("harness")

    loop.call_soon(fail)
    with pytest.raises(ValueError, match="harness"):
        loop.run_until_complete(asyncio.sleep(1))
    loop.run_until_complete(asyncio.sleep(1))


def test_an_exception_in_a_callback_of_a_node_goes_to_the_exception_handler(
    loop: SimulationLoop,
) -> None:
    reported: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))

    async def main() -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    Node(loop, "broker-0", "10.0.0.1").start(main)
    loop.run_until_complete(asyncio.sleep(2))
    assert [type(context["exception"]) for context in reported] == [ZeroDivisionError]


def test_a_failure_ends_the_run_even_when_it_is_swallowed(loop: SimulationLoop) -> None:
    async def main() -> None:
        loop.fail(OSError("the real world"))
        await asyncio.sleep(1)

    with pytest.raises(OSError, match="the real world"):
        loop.run_until_complete(main())


def test_tasks_hash_and_are_named_by_count() -> None:
    def describe() -> tuple[list[int], list[str]]:
        loop = SimulationLoop()

        async def main() -> tuple[list[int], list[str]]:
            tasks = {asyncio.create_task(asyncio.sleep(n)) for n in range(5)}
            done, _ = await asyncio.wait(tasks)
            return [hash(task) for task in done], [task.get_name() for task in done]

        try:
            return loop.run_until_complete(main())
        finally:
            loop.close()

    assert describe() == describe()


def test_an_unfinished_asynchronous_generator_is_closed(loop: SimulationLoop) -> None:
    steps: list[str] = []

    async def count() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            steps.append("closed")

    async def main() -> None:
        async for _ in count():
            break
        await asyncio.sleep(2)

    loop.run_until_complete(main())
    assert steps == ["closed"]


def test_there_are_no_threads(loop: SimulationLoop) -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        loop.run_until_complete(asyncio.to_thread(print))


def run_talkers(schedule: Schedule) -> tuple[list[tuple[str, int]], int]:
    """Three nodes that each do five steps at the same moments; returns who stepped when."""
    loop = SimulationLoop(schedule)
    steps: list[tuple[str, int]] = []

    async def talk() -> None:
        incarnation = INCARNATION.get()
        assert incarnation is not None
        for number in range(5):
            steps.append((incarnation.node, number))
            await asyncio.sleep(0.001)

    for name in ("a", "b", "c"):
        Node(loop, name, name).start(talk)
    try:
        loop.run_until_complete(asyncio.sleep(1))
    finally:
        loop.close()
    return steps, loop.deviations


def test_without_deviations_lives_take_turns_in_order() -> None:
    steps, deviations = run_talkers(Schedule(seed=1))
    assert steps == [(name, number) for number in range(5) for name in "abc"]
    assert deviations == 0


def test_deviations_reorder_lives_but_never_a_life_itself_and_repeat_with_the_seed() -> None:
    schedule = Schedule(seed=1, deviation_rate=0.5)
    steps, deviations = run_talkers(schedule)
    assert (steps, deviations) == run_talkers(schedule)
    assert deviations > 0
    assert steps != run_talkers(Schedule(seed=1))[0]
    assert steps != run_talkers(Schedule(seed=2, deviation_rate=0.5))[0]
    for name in "abc":
        assert [number for node, number in steps if node == name] == list(range(5))


def test_deviations_end_when_told() -> None:
    assert run_talkers(Schedule(seed=1, deviation_rate=0.5, deviate_until_s=0.0))[1] == 0
