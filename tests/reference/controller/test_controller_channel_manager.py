"""The channels: order, retries, and silence once a broker is removed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from nemesis.reference.controller.controller_channel_manager import (
    ControllerChannelManager,
    ControlRequest,
)
from nemesis.reference.model import Broker
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.trace import Kind
from tests.reference.controller.cluster import ListTracer

BROKER = Broker.at(2, "h", 9002)


@dataclass
class Request:
    name: str
    controller_epoch: int = 3
    broker_epoch: int = 102


class ScriptedConnection:
    """Plays one step per request: an error is raised, ``None`` blocks for ever, anything else is the answer."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.sent: list[str] = []
        self.closed = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        assert (host, port, timeout_s) == ("h", 9002, 30)
        self.sent.append(request.name)
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, Exception):
            raise step
        return step if step is not None else await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        self.closed = True


def manager(connection: ScriptedConnection, tracer: ListTracer) -> ControllerChannelManager:
    return ControllerChannelManager(
        1, connection_factory=lambda: connection, tracer=tracer, timeout_s=30, retry_backoff_s=0
    )


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 10))


def test_a_request_is_repeated_until_answered_before_the_next_one_goes() -> None:
    async def test() -> None:
        lost = NetworkError("lost", definite=False)
        connection, tracer = ScriptedConnection(lost, lost, "yes", "no"), ListTracer()
        channels = manager(connection, tracer)
        channels.startup([BROKER])
        answers: list[str] = []
        for name in ("a", "b"):
            channels.send_request(2, ControlRequest(name, Request(name), answers.append))
        await turns()
        assert connection.sent == ["a", "a", "a", "b"]
        assert answers == ["yes", "no"]
        assert tracer.of(Kind.CONTROL_REQUEST_SENT)[0] == {
            "api": "a",
            "peer": 2,
            "controller_epoch": 3,
            "broker_epoch": 102,
        }
        assert len(tracer.of(Kind.CONTROL_REQUEST_SENT)) == 4
        await channels.shutdown()
        assert connection.closed

    run(test())


def test_nothing_leaves_for_a_removed_broker() -> None:
    async def test() -> None:
        connection = ScriptedConnection(None, "never")
        channels = manager(connection, ListTracer())
        channels.startup([BROKER])
        channels.send_request(2, ControlRequest("a", Request("a")))
        channels.send_request(2, ControlRequest("b", Request("b")))
        await turns()
        channels.remove_broker(2)
        channels.send_request(2, ControlRequest("c", Request("c")))
        await turns()
        assert connection.sent == ["a"]
        assert connection.closed
        await channels.shutdown()

    run(test())


def test_a_broker_that_comes_back_gets_a_channel_of_its_own() -> None:
    async def test() -> None:
        connections = [ScriptedConnection(None), ScriptedConnection("yes")]
        waiting = list(connections)
        channels = ControllerChannelManager(
            1,
            connection_factory=lambda: waiting.pop(0),
            tracer=ListTracer(),
            timeout_s=30,
            retry_backoff_s=0,
        )
        channels.add_broker(BROKER)
        channels.add_broker(BROKER)
        channels.send_request(2, ControlRequest("old", Request("old")))
        await turns()
        channels.remove_broker(2)
        channels.add_broker(BROKER)
        channels.send_request(2, ControlRequest("new", Request("new")))
        await turns()
        assert [connection.sent for connection in connections] == [["old"], ["new"]]
        await channels.shutdown()

    run(test())


def test_an_unforeseen_error_neither_loses_the_request_nor_ends_the_channel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        connection = ScriptedConnection(RuntimeError("bug"), "yes", "no")
        channels = manager(connection, ListTracer())
        channels.startup([BROKER])
        answers: list[str] = []

        def fail(_: object) -> None:
            raise RuntimeError("bug in a callback")

        channels.send_request(2, ControlRequest("a", Request("a"), fail))
        channels.send_request(2, ControlRequest("b", Request("b"), answers.append))
        await turns()
        assert connection.sent == ["a", "a", "b"]
        assert answers == ["no"]
        await channels.shutdown()
        assert connection.closed

    run(test())
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "bug",
        "bug in a callback",
    ]
