"""The runtimes that a scenario can choose, by name.

A kind is registered without importing what it needs: the Docker SDK takes a second to load, and most runs do without.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from nemesis.interfaces.runtime import Missing, Runtime
from nemesis.registry import Registry, by_name
from nemesis.runtimes.config import ClusterConfig
from nemesis.support.runtime_names import DOCKER, LOCAL, SIMULATION


def _nothing_to_prepare(_say: Callable[[str], None]) -> None:
    """The runtime needs nothing but what ``nemesis doctor`` looks for."""


@dataclass(frozen=True, slots=True)
class RealTime:
    """How a runtime of real processes is made.

    ``create`` returns a cluster that is not started; it raises ``UsageError`` when a broker property is wrong.
    ``make_ready`` makes what this machine can keep for later runs, and raises ``MissingRequirement``; it is given a
    function that takes a sentence about what takes long.
    """

    create: Callable[[ClusterConfig], Runtime]
    make_ready: Callable[[Callable[[str], None]], None] = _nothing_to_prepare


@dataclass(frozen=True, slots=True)
class RuntimeKind:
    """A runtime that a scenario can choose."""

    name: str
    summary: str
    """One line for ``nemesis list``."""
    unsupported: Callable[[], Missing]
    """Returns the parts that the runtime has on no machine, and why."""
    real_time: RealTime | None
    """None: the runtime is simulated, and ``nemesis.running.simulated`` makes its cluster."""


def _local(config: ClusterConfig) -> Runtime:
    from nemesis.runtimes.local.runtime import LocalRuntime

    return LocalRuntime(config)


def _docker(config: ClusterConfig) -> Runtime:
    from nemesis.runtimes.docker.machine import packet_features
    from nemesis.runtimes.docker.nodes import require_containers
    from nemesis.runtimes.docker.runtime import DockerRuntime

    require_containers(config)
    return DockerRuntime(config, packet_features())


def _unsupported_by_local() -> Missing:
    from nemesis.runtimes.local.runtime import UNSUPPORTED

    return UNSUPPORTED


def _unsupported_by_docker() -> Missing:
    from nemesis.runtimes.docker.runtime import UNSUPPORTED

    return UNSUPPORTED


def _unsupported_by_simulation() -> Missing:
    from nemesis.runtimes.simulation.runtime import UNSUPPORTED

    return UNSUPPORTED


def _build_image(say: Callable[[str], None]) -> None:
    from nemesis.runtimes.docker.engine import connect
    from nemesis.runtimes.docker.image import ensure_image

    with closing(connect()) as client:
        ensure_image(client, progress=say)


RUNTIMES: Final[Registry[RuntimeKind]] = Registry(
    "runtime",
    by_name(
        (
            RuntimeKind(
                LOCAL,
                "processes on this machine, the default",
                _unsupported_by_local,
                RealTime(_local),
            ),
            RuntimeKind(
                DOCKER,
                "containers with addresses and disks",
                _unsupported_by_docker,
                RealTime(_docker, _build_image),
            ),
            RuntimeKind(
                SIMULATION,
                "everything in one process on virtual time",
                _unsupported_by_simulation,
                None,
            ),
        )
    ),
)
"""Every runtime by the name that ``--runtime`` takes."""
