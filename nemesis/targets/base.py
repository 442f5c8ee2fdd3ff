"""What a runtime must know of a system under test: the configuration of one broker, and how to start it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from nemesis.history.sources import EventSource
from nemesis.interfaces.links import Address
from nemesis.interfaces.runtime import Missing
from nemesis.support.errors import UsageError
from nemesis.support.node_names import id_of, is_controller

PLAINTEXT: Final = "PLAINTEXT"
CONTROLLERS: Final = "controllers"
"""The option of a target that has KRaft controllers apart from its brokers: their number."""
RUNTIME_PROPERTIES: Final = frozenset(
    {
        "broker.id",
        "listeners",
        "advertised.listeners",
        "zookeeper.connect",
        "log.dirs",
        "trace.file",
        "random.seed",
        "node.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "metadata.log.dir",
    }
)
"""The runtime's to decide; a scenario that sets one is refused."""

SEED_STRIDE = 1_000
"""Brokers of one run draw from different seeds, and so do equal brokers of neighbouring seeds."""

CONTROL_PLANE_PORT_OFFSET = 1
"""A broker that listens to its controller apart (``control.plane.listener.name``) does so at the port above its own."""


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """A broker's addresses and files: what the runtime decides and a scenario may not."""

    broker_id: int
    bind: Address
    advertised: Address
    zookeeper_connect: str
    log_dirs: tuple[Path, ...]
    trace_file: Path | None
    """None: the broker records nothing."""
    seed: int
    voters: tuple[tuple[int, Address], ...] = ()
    """Of a KRaft quorum: the ids of its controllers, and where each is found as such."""

    @property
    def control_plane_bind(self) -> Address:
        return control_plane(self.bind)

    @property
    def control_plane_advertised(self) -> Address:
        return control_plane(self.advertised)


def broker_id_of(node: str) -> int:
    """Return the id of a node ``broker-N``, or of a controller of its own."""
    return id_of(node)


def control_plane(address: Address) -> Address:
    """Return where a broker of this address listens to its controller, if it does so apart, or as a controller."""
    return Address(address.host, address.port + CONTROL_PLANE_PORT_OFFSET)


def voters(
    nodes: Iterable[str], advertised: Callable[[str], Address]
) -> tuple[tuple[int, Address], ...]:
    """Return the ids of these nodes, all of them controllers, and where each is found as such."""
    return tuple(
        (
            broker_id_of(node),
            advertised(node) if is_controller(node) else control_plane(advertised(node)),
        )
        for node in nodes
    )


@dataclass(frozen=True, slots=True)
class BrokerProgram:
    """What starts one broker process, and what a container must have so that it can run there, beside the image."""

    command: list[str]
    memory: str = "512m"
    """The most that a container may take, as compose writes it."""
    paths: tuple[Path, ...] = ()
    """Files and directories of this machine. A container has them at the same places and cannot write them."""


class Target(Protocol):
    """A system under test."""

    @property
    def name(self) -> str: ...

    @property
    def observes(self) -> frozenset[EventSource]:
        """The sources of events that the target has; a property that needs another one is not observed."""

    @property
    def options(self) -> dict[str, str]:
        """What a scenario and the command line choose of this target, by the names of the command line's options."""

    def with_options(self, options: Mapping[str, str]) -> Self:
        """Return the target with these options, the others as they are by default; raises ``UsageError``."""

    def make_ready(self, say: Callable[[str], None]) -> None:
        """Make what the target needs on this machine and the machine can keep; raises ``MissingRequirement``.

        ``say`` is given a sentence about what takes long.
        """

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the whole configuration of one broker under Kafka's names; raises ``UsageError``."""

    def missing(self, properties: Mapping[str, object]) -> Missing:
        """Return the parts, by type, that brokers with these properties make impossible on any runtime, and why."""

    def broker_program(
        self,
        broker_id: int,
        config_file: Path,
        mutant: str | None,
        *,
        python: str = sys.executable,
        disk_commands: Path | None = None,
    ) -> BrokerProgram:
        """Return what starts one broker, once ``make_ready`` was called.

        ``python`` is the interpreter there. ``disk_commands`` is the directory of the commands of a disk that fails on
        command, for a broker that has no disk of its own.
        """


def uses_zookeeper(target: Target) -> bool:
    """Return whether brokers keep their metadata in ZooKeeper; otherwise they are voters of a KRaft quorum, too."""
    return EventSource.QUORUM_LOG not in target.observes


def controllers_of(target: Target) -> int:
    """Return how many KRaft controllers the cluster has that are not brokers."""
    return int(target.options.get(CONTROLLERS, 0))


def refuse_options(target: str, options: Mapping[str, str], allowed: Collection[str] = ()) -> None:
    """Raise ``UsageError`` for an option that the target does not have."""
    for name in options:
        if name not in allowed:
            raise UsageError(f"--{name}: the target {target} has no such option, leave it out")


def refuse_runtime_properties(properties: Mapping[str, object]) -> None:
    """Raise ``UsageError`` when a scenario sets a property that is the runtime's to decide."""
    if taken := sorted(RUNTIME_PROPERTIES & properties.keys()):
        raise UsageError(f"broker configuration: {taken[0]} is set by the runtime, leave it out")


def listener_properties(
    endpoint: BrokerEndpoint, properties: Mapping[str, object]
) -> dict[str, object]:
    """Return the listener for everybody, and the one for the controller alone if the scenario names one."""
    bind, advertised = [f"{PLAINTEXT}://{endpoint.bind}"], [f"{PLAINTEXT}://{endpoint.advertised}"]
    name = properties.get("control.plane.listener.name")
    if isinstance(name, str):
        bind.append(f"{name}://{endpoint.control_plane_bind}")
        advertised.append(f"{name}://{endpoint.control_plane_advertised}")
    return {"listeners": ",".join(bind), "advertised.listeners": ",".join(advertised)}


def log_dirs_in(directory: Path, count: int) -> tuple[Path, ...]:
    """Return where a broker keeps its logs: in the directory itself, or in so many below it."""
    if count == 1:
        return (directory,)
    return tuple(directory / f"logs-{number}" for number in range(1, count + 1))


def seed_of_broker(seed: int, broker_id: int) -> int:
    """Return what the broker's own randomness starts from in a run of this seed."""
    return seed * SEED_STRIDE + broker_id
