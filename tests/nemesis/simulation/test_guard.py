"""What a simulated node may not do, and what it may."""

# ruff: noqa: PLW0108 - the functions must be looked up while they are replaced

from __future__ import annotations

import asyncio
import contextlib
import datetime
import importlib
import io
import logging
import os
import pathlib
import random
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from nemesis.simulation.guard import RealWorldError, real_world_forbidden
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.node import Node


def run_in_node(call: Callable[[], object], *, guarded: bool = True) -> object:
    """What ``call`` returns, run by a node at 1.5 virtual seconds."""
    loop = SimulationLoop()
    results: list[object] = []

    async def main() -> None:
        await asyncio.sleep(1.5)
        results.append(call())

    try:
        node = Node(loop, "broker-7", "10.0.0.7")
        node.start(main)
        if guarded:
            with real_world_forbidden():
                loop.run_until_complete(asyncio.sleep(2))
        else:
            loop.run_until_complete(asyncio.sleep(2))
        if node.exit is not None and node.exit.error is not None:
            raise node.exit.error
        return results[0]
    finally:
        loop.close()


def open_socket() -> None:
    socket.socket().close()


def start_thread() -> None:
    threading.Thread(target=print).start()


REAL_WORLD: dict[str, Callable[[], object]] = {
    "time.time": lambda: time.time(),
    "time.monotonic_ns": lambda: time.monotonic_ns(),
    "time.perf_counter": lambda: time.perf_counter(),
    "time.sleep": lambda: time.sleep(0),
    "datetime.datetime.now": lambda: datetime.datetime.now(tz=datetime.UTC),
    "datetime.date.today": lambda: datetime.date.today(),  # noqa: DTZ011
    "random.random": lambda: random.random(),
    "random.shuffle": lambda: random.shuffle([1, 2]),
    r"random.Random\(\) without a seed": lambda: random.Random(),
    "os.urandom": lambda: os.urandom(1),
    "random._urandom": lambda: secrets.token_bytes(1),
    "uuid.uuid4": lambda: uuid.uuid4(),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "open": lambda: pathlib.Path(__file__).read_bytes(),
    "os.listdir": lambda: os.listdir("/"),  # noqa: PTH208
    r"os.mkdir|tempfile.mkdtemp|random": lambda: tempfile.mkdtemp(),
    "socket.__new__": open_socket,
    "socket.getaddrinfo": lambda: socket.getaddrinfo("localhost", 1),
    "threading._start": start_thread,
    r"subprocess.Popen|os\.|_thread": lambda: subprocess.run(["true"], check=True),
}


@pytest.mark.parametrize("name", REAL_WORLD)
def test_a_node_that_touches_the_real_world_is_told_which_call(name: str) -> None:
    with pytest.raises(RealWorldError, match=rf"broker-7 called ({name})"):
        run_in_node(REAL_WORLD[name])


def test_swallowing_the_error_does_not_hide_it() -> None:
    def swallow() -> None:
        with contextlib.suppress(Exception):
            time.time()

    with pytest.raises(RealWorldError, match=r"time\.time"):
        run_in_node(swallow)


def test_outside_of_the_guard_and_of_nodes_everything_works() -> None:
    originals = (time.time, random.random, os.urandom, datetime.datetime, random.Random.seed)
    assert isinstance(run_in_node(lambda: time.time(), guarded=False), float)
    with real_world_forbidden(), real_world_forbidden():
        assert time.time() > 0
        assert isinstance(datetime.datetime.now(tz=datetime.UTC), datetime.datetime)
        assert 0 <= random.Random().random() < 1
        assert len(secrets.token_bytes(3)) == 3
        assert pathlib.Path(__file__).exists()
        with pytest.raises(RealWorldError):
            run_in_node(lambda: time.time())
    assert originals == (
        time.time,
        random.random,
        os.urandom,
        datetime.datetime,
        random.Random.seed,
    )


def test_seeded_randomness_and_given_moments_work_in_nodes() -> None:
    def moments() -> tuple[object, ...]:
        instant = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
        assert isinstance(instant, datetime.datetime)
        assert isinstance(instant, datetime.date)
        later = datetime.datetime.fromtimestamp(86400, tz=datetime.UTC)
        return instant.isoformat(), later.year, later - instant, type(later).__name__

    assert run_in_node(moments) == (
        "2020-01-02T00:00:00+00:00",
        1970,
        -datetime.timedelta(days=18262),
        "datetime",
    )
    assert run_in_node(lambda: random.Random(4).random()) == random.Random(4).random()


def test_logging_works_in_nodes_with_virtual_times() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(created).3f %(message)s"))
    logger = logging.getLogger("test of the guard")
    logger.addHandler(handler)
    logger.propagate = False

    def fail() -> None:
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("caught")

    try:
        run_in_node(fail)
    finally:
        logger.removeHandler(handler)
    assert written.getvalue().startswith("1.500 caught\nTraceback")
    assert 'raise ValueError("broken")' in written.getvalue()


def test_imports_work_in_nodes() -> None:
    sys.modules.pop("colorsys", None)
    importlib.invalidate_caches()
    module = run_in_node(lambda: importlib.import_module("colorsys"))
    assert module is sys.modules["colorsys"]
