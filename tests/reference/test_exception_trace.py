"""Unforeseen exceptions reach the trace from every edge, foreseen ones do not."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from nemesis.history.events import Kind
from nemesis.reference.controller.controller_event_manager import (
    ControllerEvent,
    ControllerEventManager,
)
from nemesis.reference.exception_trace import described, traced_exceptions
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.server.kafka_server import STARTUP_ERRORS


class Trace:
    def __init__(self) -> None:
        self.errors: list[str] = []

    def event(self, kind: Kind, /, **columns: Any) -> None:
        assert kind == Kind.UNFORESEEN_EXCEPTION
        self.errors.append(columns["error"])


class Event:
    def preempt(self) -> None:
        pass


def fails() -> None:
    raise KeyError(7)


async def _scheduled_job_fails() -> None:
    scheduler = KafkaScheduler()
    scheduler.schedule_once("job", fails, delay_s=0.0)
    await asyncio.sleep(0.01)
    await scheduler.shutdown()


async def _controller_event_fails() -> None:
    async def process(_event: ControllerEvent) -> None:
        fails()

    manager = ControllerEventManager(1, process)
    manager.start()
    await manager.put(Event()).await_over()
    await manager.close()


async def _task_ends_with(error: BaseException) -> None:
    async def work() -> None:
        raise error

    task = asyncio.get_running_loop().create_task(work())
    await asyncio.wait([task])
    del task
    gc.collect()


def traced(scene: Callable[[], Any], *, is_own: bool = True) -> list[str]:
    trace = Trace()
    with traced_exceptions(trace, STARTUP_ERRORS, is_own=lambda: is_own):
        asyncio.run(scene())
    return trace.errors


def test_a_scheduled_job_that_fails_is_traced_with_the_function_that_failed() -> None:
    assert traced(_scheduled_job_fails) == [
        "KeyError: 7 in kafka_scheduler: _attempt",
    ]


def test_an_event_of_the_controller_that_fails_is_traced() -> None:
    (error,) = traced(_controller_event_fails)
    assert error.startswith("KeyError: 7 in controller.controller_event_manager")


def test_a_task_that_nobody_awaits_is_traced() -> None:
    assert traced(lambda: _task_ends_with(ValueError("odd"))) == ["ValueError: odd"]


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError(104, "reset"), TimeoutError(), asyncio.IncompleteReadError(b"", 4)],
)
def test_a_connection_that_broke_under_a_task_is_foreseen(error: BaseException) -> None:
    assert traced(lambda: _task_ends_with(error)) == []


def test_a_cancelled_task_is_foreseen() -> None:
    assert traced(lambda: _task_ends_with(asyncio.CancelledError())) == []


def test_exceptions_of_another_broker_in_the_process_are_not_traced() -> None:
    assert traced(_scheduled_job_fails, is_own=False) == []


def test_an_error_that_a_broker_logs_without_an_exception_is_foreseen() -> None:
    async def scene() -> None:
        logging.getLogger("nemesis.reference.log").error("log directory %s goes offline", "/a")

    assert traced(scene) == []


def test_what_ends_the_process_is_traced_unless_the_broker_refuses_to_start() -> None:
    trace = Trace()
    for error in (KafkaStorageError("/a"), OSError(98, "in use"), ZeroDivisionError("by zero")):
        with suppress(type(error)), traced_exceptions(trace, STARTUP_ERRORS):
            raise error
    assert trace.errors == ["ZeroDivisionError: by zero"]


def test_nothing_is_traced_when_the_block_has_ended_or_the_broker_was_killed() -> None:
    trace = Trace()
    deaths: list[Callable[[], None]] = []
    logger = logging.getLogger("nemesis.reference.server")
    with traced_exceptions(trace, STARTUP_ERRORS, on_death=deaths.append):
        deaths.pop()()
        logger.error("killed", exc_info=KeyError(7))
    logger.error("ended", exc_info=KeyError(7))
    assert trace.errors == []


def test_the_address_of_an_object_is_left_out() -> None:
    assert described(ValueError("<object at 0x7f001122>")) == "ValueError: <object>"
    assert described(ValueError()) == "ValueError"
