"""Recurring jobs on a virtual clock."""

from __future__ import annotations

import asyncio

import pytest

from nemesis.reference.kafka_scheduler import KafkaScheduler
from tests.reference.virtual_time import run


def test_a_job_runs_after_each_period_until_the_scheduler_ends() -> None:
    turns: list[float] = []

    async def test() -> None:
        scheduler = KafkaScheduler()
        clock = asyncio.get_running_loop().time
        start = clock()
        scheduler.schedule("job", lambda: turns.append(clock() - start), period_s=5)
        await asyncio.sleep(12)
        await scheduler.shutdown()
        await asyncio.sleep(12)

    run(test())
    assert turns == [5, 10]


def test_each_turn_of_a_recurring_job_is_reported_before_it() -> None:
    turns: list[str] = []

    async def test() -> None:
        scheduler = KafkaScheduler(on_turn=lambda name: turns.append(f"turn of {name}"))
        scheduler.schedule("job", lambda: turns.append("job"), period_s=5)
        scheduler.schedule_once("other", lambda: turns.append("other"), delay_s=6)
        await asyncio.sleep(12)
        await scheduler.shutdown()

    run(test())
    assert turns == ["turn of job", "job", "other", "turn of job", "job"]


def test_a_job_is_awaited_before_its_next_period_begins() -> None:
    turns: list[float] = []

    async def test() -> None:
        scheduler = KafkaScheduler()
        clock = asyncio.get_running_loop().time
        start = clock()

        async def slow() -> None:
            await asyncio.sleep(3)
            turns.append(clock() - start)

        scheduler.schedule("slow", slow, period_s=5)
        await asyncio.sleep(20)
        await scheduler.shutdown()

    run(test())
    assert turns == [8, 16]


def test_a_job_that_fails_runs_again_at_its_next_turn(caplog: pytest.LogCaptureFixture) -> None:
    turns: list[str] = []

    def fail() -> None:
        turns.append("failing")
        raise OSError("no space")

    async def test() -> None:
        scheduler = KafkaScheduler()
        scheduler.schedule("failing", fail, period_s=5)
        scheduler.schedule("other", lambda: turns.append("other"), period_s=5)
        await asyncio.sleep(12)
        await scheduler.shutdown()

    run(test())
    assert sorted(turns) == ["failing", "failing", "other", "other"]
    assert "the job failing failed" in caplog.text
