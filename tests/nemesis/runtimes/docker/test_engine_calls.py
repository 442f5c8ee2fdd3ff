"""Calls to the engine are not broken off, and their errors are one sentence."""

from __future__ import annotations

import asyncio
import threading

import pytest
from docker.errors import APIError

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.docker.engine_calls import ask, together


def test_an_error_is_one_sentence_in_the_engines_words() -> None:
    def refuse() -> None:
        raise APIError("409 Client Error", explanation="the name\nis taken")

    with pytest.raises(RuntimeFailure) as caught:
        asyncio.run(ask("make it", refuse))
    assert str(caught.value) == "the Docker engine cannot make it: the name is taken"


def test_a_cancelled_call_is_waited_for() -> None:
    begun, may_end, made = threading.Event(), threading.Event(), []

    def make() -> None:
        begun.set()
        may_end.wait(10)
        made.append("container")

    async def scene() -> None:
        call = asyncio.ensure_future(ask("make it", make))
        await asyncio.to_thread(begun.wait, 10)
        call.cancel()
        asyncio.get_running_loop().call_later(0.01, may_end.set)
        with pytest.raises(asyncio.CancelledError):
            await call
        assert made == ["container"]

    asyncio.run(scene())


def test_one_failure_does_not_leave_the_others_behind() -> None:
    done: list[str] = []

    async def fail() -> None:
        raise RuntimeFailure("no")

    async def succeed() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        done.append("yes")

    with pytest.raises(RuntimeFailure, match="no"):
        asyncio.run(together([fail(), succeed()]))
    assert done == ["yes"]
