"""The purgatory, with an operation that the test completes."""

from __future__ import annotations

import asyncio

import pytest

from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.model import TopicPartition
from tests.reference.virtual_time import run

A, B, C = (TopicPartition("t", number) for number in range(3))


class RecordedCompletion:
    """Complete once ``last`` has changed; answers with all keys that have."""

    def __init__(self, last: TopicPartition) -> None:
        self.last = last
        self.keys: list[TopicPartition] = []

    def try_complete(self, key: TopicPartition) -> bool:
        self.keys.append(key)
        return key == self.last

    def results(self) -> list[TopicPartition]:
        return self.keys


def watch(
    purgatory: DelayedOperationPurgatory[TopicPartition], last: TopicPartition
) -> asyncio.Future[int]:
    return purgatory.watch(RecordedCompletion(last), [A, B], timeout_s=1, respond=len)


def test_it_completes_in_the_step_of_the_progress_and_is_forgotten() -> None:
    async def main() -> None:
        purgatory = DelayedOperationPurgatory[TopicPartition]()
        first, second = watch(purgatory, A), watch(purgatory, B)
        purgatory.check_and_complete(C)
        assert len(purgatory) == 4
        purgatory.check_and_complete(A)
        assert (first.result(), second.done(), len(purgatory)) == (1, False, 2)
        purgatory.check_and_complete(B)
        assert (second.result(), len(purgatory)) == (2, 0)

    run(main())


def test_it_answers_when_its_time_is_up() -> None:
    async def main() -> None:
        purgatory = DelayedOperationPurgatory[TopicPartition]()
        assert await watch(purgatory, B) == 0
        assert asyncio.get_running_loop().time() == pytest.approx(1)
        assert len(purgatory) == 0

    run(main())


def test_who_gives_up_is_forgotten() -> None:
    async def main() -> None:
        purgatory = DelayedOperationPurgatory[TopicPartition]()
        future = watch(purgatory, A)
        assert future.cancel()
        assert not future.cancel()
        assert len(purgatory) == 0

    run(main())


def test_a_failure_is_told_to_who_waits_not_to_who_made_the_progress() -> None:
    def fail(_: list[TopicPartition]) -> int:
        raise ZeroDivisionError

    async def main() -> None:
        purgatory = DelayedOperationPurgatory[TopicPartition]()
        failing = purgatory.watch(RecordedCompletion(A), [A], timeout_s=1, respond=fail)
        well = watch(purgatory, A)
        purgatory.check_and_complete(A)
        assert well.result() == 1
        with pytest.raises(ZeroDivisionError):
            await failing

    run(main())
