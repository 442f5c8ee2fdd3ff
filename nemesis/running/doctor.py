"""``nemesis doctor``: what is missing on this machine, and how to get it. The runtime asks the same questions.

Each check looks at the real thing: it runs ``java``, binds an address, writes into the store.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psutil

from nemesis.runtimes.clock_control.library import wall_clock_library
from nemesis.runtimes.local.addresses import BUSY_LIMIT, AddressPlan, first_busy
from nemesis.support import java
from nemesis.support.errors import MissingRequirement
from nemesis.support.journal import read_journals, runtime_directory
from nemesis.support.runtime_names import DOCKER, LOCAL, SIMULATION
from nemesis.targets.kafka.maven import find_maven

MINIMUM_PYTHON = (3, 11)
MINIMUM_MEMORY_BYTES = 2 * 2**30
"""Three brokers, ZooKeeper, the harness and a small Spark."""

MINIMUM_DISK_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the machine. ``cure`` is empty when all is well.

    What is not required is needed by the runtime ``docker``, by the target ``kafka`` or by single faults only, or is no
    more than worth knowing.
    """

    name: str
    ok: bool
    detail: str
    cure: str = ""
    is_required: bool = True


NEEDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        LOCAL: (
            "python",
            "java",
            "zookeeper",
            "runtime directory",
            "loopback",
            "ports",
            "memory",
            "store",
            "disk",
        ),
        DOCKER: (
            "python",
            "java",
            "zookeeper",
            "runtime directory",
            "memory",
            "store",
            "disk",
            "docker",
        ),
        SIMULATION: ("python", "store"),
    }
)
"""What each runtime cannot do without. Of Java, containers have their own; the checkers' Spark needs this machine's."""


def examine(store: Path) -> list[Check]:
    """Return every check, in a fixed order; ``store`` is where runs are to be written. Nothing is left behind."""
    return [question() for question in _questions(store).values()]


def require(store: Path, runtime: str = LOCAL) -> None:
    """Raise ``MissingRequirement`` with the first thing that is missing and that this runtime needs."""
    questions = _questions(store)
    for name in NEEDED[runtime]:
        check = questions[name]()
        if not check.ok:
            raise MissingRequirement(check.cure or check.detail)


def _questions(store: Path) -> dict[str, Callable[[], Check]]:
    return {
        "python": _python,
        "java": lambda: _asked("java", _java),
        "zookeeper": lambda: _asked("zookeeper", _zookeeper_jars),
        "runtime directory": lambda: _asked("runtime directory", lambda: str(runtime_directory())),
        "loopback": lambda: _asked("loopback", _loopback),
        "ports": lambda: _asked("ports", _ports),
        "memory": _memory,
        "store": lambda: _asked("store", lambda: _store(store)),
        "disk": lambda: _disk(store),
        "docker": lambda: replace(_asked("docker", _docker), is_required=False),
        "broker disks": lambda: replace(_asked("broker disks", _broker_disks), is_required=False),
        "wall clocks": lambda: replace(_asked("wall clocks", _wall_clocks), is_required=False),
        "maven": lambda: replace(_asked("maven", _maven), is_required=False),
        "leftovers": _leftovers,
    }


def _asked(name: str, question: Callable[[], str]) -> Check:
    try:
        return Check(name, ok=True, detail=question())
    except MissingRequirement as error:
        return Check(name, ok=False, detail="missing", cure=str(error))


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info[:2] >= MINIMUM_PYTHON
    wanted = ".".join(map(str, MINIMUM_PYTHON))
    cure = "" if ok else f"Python {version} is too old: install Python {wanted} or newer"
    return Check("python", ok=ok, detail=version, cure=cure)


def _java() -> str:
    path = java.require_java()
    return f"{path}, Java {java.java_version(path)}"


def _zookeeper_jars() -> str:
    jars = java.zookeeper_classpath()
    return next(jar.name for jar in jars if jar.name.startswith("zookeeper-3"))


def _docker() -> str:
    from nemesis.runtimes.docker.engine import require_docker

    return require_docker()


def _broker_disks() -> str:
    from nemesis.runtimes.docker.machine import disk_obstacle

    if obstacle := disk_obstacle():
        raise MissingRequirement(obstacle)
    return "each broker in containers has an ext4 of its own"


def _wall_clocks() -> str:
    wall_clock_library()
    return "the library that moves them is there"


def _maven() -> str:
    return f"{find_maven()}, for `nemesis fetch kafka`"


def _loopback() -> str:
    address = AddressPlan("127.254.255", brokers=1, zookeepers=1, clients=1).direct("broker-1")
    if first_busy([type(address)(address.host, 0)]) is not None:
        raise MissingRequirement(
            f"{address.host} cannot be bound: let the loopback interface own 127.0.0.0/8 "
            "(macOS: `sudo ifconfig lo0 alias 127.x.y.z` for each address), or run on Linux"
        )
    return "127.0.0.0/8 can be bound"


def _ports() -> str:
    busy = None
    for y in range(BUSY_LIMIT):
        plan = AddressPlan(f"127.254.{255 - y}", brokers=1, zookeepers=1, clients=1)
        busy = first_busy(plan.listening())
        if busy is None:
            return ", ".join(str(address.port) for address in plan.listening())
    raise MissingRequirement(
        f"{busy} is in use, as on every other loopback address: stop the program that listens on it"
    )


def _memory() -> Check:
    available = psutil.virtual_memory().available
    ok = available >= MINIMUM_MEMORY_BYTES
    cure = "" if ok else f"free {_gib(MINIMUM_MEMORY_BYTES)} of memory, {_gib(available)} are left"
    return Check("memory", ok=ok, detail=f"{_gib(available)} available", cure=cure)


def _store(store: Path) -> str:
    """Write where the store is, or would be made."""
    folder = _nearest_existing(store)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise MissingRequirement(
            f"the store {store} cannot be written ({error.strerror} in {folder}): "
            "choose another with --store"
        ) from None
    return str(store)


def _disk(store: Path) -> Check:
    free = psutil.disk_usage(os.fspath(_nearest_existing(store))).free
    ok = free >= MINIMUM_DISK_BYTES
    cure = "" if ok else f"{_gib(free)} are left for {store}: free {_gib(MINIMUM_DISK_BYTES)}"
    return Check("disk", ok=ok, detail=f"{_gib(free)} free", cure=cure)


def _leftovers() -> Check:
    try:
        dead = [e for _, e in read_journals() if e is None or e.harness.find() is None]
    except MissingRequirement as error:
        return Check("leftovers", ok=False, detail="unknown", cure=str(error), is_required=False)
    cure = "run `nemesis clean`" if dead else ""
    detail = f"{len(dead)} interrupted runs left processes or leases" if dead else "none"
    return Check("leftovers", ok=not dead, detail=detail, cure=cure, is_required=False)


def _nearest_existing(path: Path) -> Path:
    resolved = path.resolve()
    return next(p for p in (resolved, *resolved.parents) if p.exists())


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
