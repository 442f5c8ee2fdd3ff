"""What a user chooses between by name, as far as it can be said without importing what is chosen.

An unknown name becomes one sentence with the allowed ones (``one_of``).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, TypeVar

from nemesis.registry import Registry, UnknownNameError, unknown
from nemesis.support.errors import UsageError

if TYPE_CHECKING:
    from nemesis.checkers.framework.engine import Engine

T = TypeVar("T")

LOCAL: Final = "local"
DOCKER: Final = "docker"
SIMULATION: Final = "simulation"
RUNTIMES: Final = (LOCAL, DOCKER, SIMULATION)
ENGINES: Final[tuple[Engine, ...]] = ("spark", "inline")
SPARK_MASTER: Final = re.compile(
    r"local|local\[(\d+|\*)(,\d+)?\]|local-cluster\[.+\]|spark://.+|yarn|k8s://.+"
)


def choose(registry: Registry[T], name: str) -> T:
    """Return the object that is registered under this name; raises ``UsageError`` with the names that exist."""
    try:
        return registry.find(name)
    except UnknownNameError as error:
        raise UsageError(str(error)) from None


def one_of(what: str, value: str, allowed: Collection[str]) -> None:
    """Raise ``UsageError`` naming the value and the allowed ones when it is none of them."""
    if value not in allowed:
        raise UsageError(unknown(what, value, allowed))


def engine_of(name: str) -> Engine:
    """Return the engine of this name; raises ``UsageError``."""
    one_of("engine", name, ENGINES)
    return next(engine for engine in ENGINES if engine == name)


def spark_master_of(url: str | None, engine: str) -> str | None:
    """Return the master to use; raises ``UsageError`` for one that Spark would not know, or that is not asked."""
    if url is None:
        return None
    if engine != "spark":
        raise UsageError(
            f"--spark-master {url} needs --engine spark; here it is {engine}, as for a simulation by default"
        )
    if not SPARK_MASTER.fullmatch(url):
        raise UsageError(
            f"--spark-master is {url!r}: allowed are local, local[N], local[*], spark://HOST:PORT, yarn, k8s://URL"
        )
    return url
