"""A moved wall clock moves no time-out: neither of a Python nor of a Java virtual machine."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway

from nemesis.runtimes.clock_control import control_page
from nemesis.runtimes.clock_control.control_page import ClockSetting
from nemesis.runtimes.clock_control.library import environment
from tests.nemesis.runtimes.clock_control.programs import PythonProgram

HOUR_MS = 3_600_000
NEAR_S = 60.0
WAIT_S = 0.02
WAIT_MS = 20
AN_HOUR_EITHER_WAY = (HOUR_MS, -HOUR_MS)

PYTHON_WAITS = {
    "sleep": "time.sleep(wait_s)",
    "lock": "lock = threading.Lock(); lock.acquire(); lock.acquire(timeout=wait_s)",
    "event": "threading.Event().wait(wait_s)",
    "condition": "with (condition := threading.Condition()): condition.wait(wait_s)",
    "join": "threading.Thread(target=threading.Event().wait, daemon=True).start(); "
    "threading.enumerate()[-1].join(wait_s)",
    "select": "select.select([], [], [], wait_s)",
    "event loop": "asyncio.run(asyncio.sleep(wait_s))",
}


def set_clock(page: Path, offset_ms: int) -> None:
    control_page.write(page, ClockSetting(time.time_ns(), offset_ms, drift=0.0))


@pytest.mark.parametrize("name", PYTHON_WAITS)
def test_python_waits_as_long_as_it_should(program: PythonProgram, page: Path, name: str) -> None:
    for offset_ms in AN_HOUR_EITHER_WAY:
        set_clock(page, offset_ms)
        took_s = program.ask(
            f"import asyncio, select, threading, time; wait_s = {WAIT_S}\n"
            "begin_s = time.monotonic()\n"
            f"{PYTHON_WAITS[name]}\n"
            "answer = time.monotonic() - begin_s"
        )
        assert WAIT_S * 0.99 <= took_s < NEAR_S


def test_a_python_that_waits_is_not_woken_or_held_by_a_step(
    program: PythonProgram, page: Path
) -> None:
    set_clock(page, 0)
    program.tell(
        "import threading, time; begin_s = time.monotonic()\n"
        "threading.Event().wait(0.1)\n"
        "answer = time.monotonic() - begin_s"
    )
    for offset_ms in AN_HOUR_EITHER_WAY * 5:
        set_clock(page, offset_ms)
    assert 0.099 <= program.answer() < NEAR_S


@contextmanager
def java(library: Path, page: Path) -> Iterator[Any]:
    """The classes of a Java virtual machine under the page, to be called from here."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("py4j-*.jar")
    command = ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(jar)]
    machine = subprocess.Popen(
        [*command, "py4j.GatewayServer", "0"],
        env=environment(library, page),
        executable=shutil.which("java"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert machine.stdout is not None
        port = int(machine.stdout.readline())
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        yield gateway.jvm
        gateway.close()
    finally:
        machine.kill()
        machine.communicate()


@pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java on the PATH")
def test_java_sees_the_moved_clock_and_waits_as_long_as_it_should(
    library: Path, page: Path
) -> None:
    set_clock(page, 0)
    with java(library, page) as classes:
        concurrent, lang = classes.java.util.concurrent, classes.java.lang
        unit = concurrent.TimeUnit.MILLISECONDS
        waits: dict[str, Callable[[], object]] = {
            "sleep": lambda: lang.Thread.sleep(WAIT_MS),
            "join": lambda: lang.Thread.currentThread().join(WAIT_MS),
            "semaphore": lambda: concurrent.Semaphore(0).tryAcquire(WAIT_MS, unit),
            "queue": lambda: concurrent.LinkedBlockingQueue().poll(WAIT_MS, unit),
            "park": lambda: concurrent.locks.LockSupport.parkNanos(WAIT_MS * 1_000_000),
        }
        for offset_ms in (0, *AN_HOUR_EITHER_WAY):
            set_clock(page, offset_ms)
            wanted = pytest.approx(offset_ms / 1000, abs=NEAR_S)
            assert lang.System.currentTimeMillis() / 1000 - time.time() == wanted
            assert classes.java.time.Instant.now().toEpochMilli() / 1000 - time.time() == wanted
            assert classes.java.util.Date().getTime() / 1000 - time.time() == wanted
            assert abs(lang.System.nanoTime() - time.monotonic_ns()) < NEAR_S * 1e9
            for name, wait in waits.items():
                begin_s = time.monotonic()
                wait()
                took_s = time.monotonic() - begin_s
                assert WAIT_S * 0.9 <= took_s < NEAR_S, (name, offset_ms)
