"""The event queue: one at a time, in order; what is preempted is told so and never processed."""

from __future__ import annotations

import asyncio

from nemesis.reference.controller.controller_event_manager import (
    ControllerEvent,
    ControllerEventManager,
)


class Noted:
    def __init__(self, name: str) -> None:
        self.name = name
        self.preempted = False

    def preempt(self) -> None:
        self.preempted = True


async def scenario() -> None:
    processed: list[str] = []
    gate = asyncio.Event()

    async def process(event: ControllerEvent) -> None:
        assert isinstance(event, Noted)
        if event.name == "first":
            await gate.wait()
        if event.name == "bad":
            raise ValueError(event.name)
        processed.append(event.name)

    manager = ControllerEventManager(1, process)
    manager.start()
    first, second, third, bad, last = (
        Noted(n) for n in ("first", "second", "third", "bad", "last")
    )
    manager.put(first)
    await asyncio.sleep(0)
    waiting = manager.put(second)
    urgent = manager.clear_and_put(third)
    await waiting.await_over()
    assert second.preempted
    assert processed == []
    gate.set()
    await urgent.await_over()
    assert processed == ["first", "third"]
    await manager.put(bad).await_over()
    await manager.put(last).await_over()
    assert processed == ["first", "third", "last"]
    await manager.close()
    late = Noted("late")
    await manager.put(late).await_over()
    assert late.preempted


def test_events_are_processed_one_after_the_other_unless_preempted() -> None:
    asyncio.run(scenario())
