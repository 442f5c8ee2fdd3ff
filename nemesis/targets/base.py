"""What a runtime must know of a system under test: the configuration of one broker, and how to start it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nemesis.interfaces.links import Address
from nemesis.interfaces.runtime import Missing

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

    @property
    def control_plane_bind(self) -> Address:
        return control_plane(self.bind)

    @property
    def control_plane_advertised(self) -> Address:
        return control_plane(self.advertised)


def control_plane(address: Address) -> Address:
    """Return where a broker of this address listens to its controller, if it does so apart."""
    return Address(address.host, address.port + CONTROL_PLANE_PORT_OFFSET)


class Target(Protocol):
    """A system under test."""

    @property
    def name(self) -> str: ...

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the whole configuration of one broker under Kafka's names; raises ``UsageError``."""

    def missing(self, properties: Mapping[str, object]) -> Missing:
        """Return the parts, by type, that brokers with these properties make impossible on any runtime, and why."""

    def broker_command(
        self,
        config_file: Path,
        mutant: str | None,
        *,
        python: str = sys.executable,
        disk_commands: Path | None = None,
    ) -> list[str]:
        """Return the command line of one broker process.

        ``python`` is the interpreter there. ``disk_commands`` is the directory of the commands of a disk that fails on
        command, for a broker that has no disk of its own.
        """


def log_dirs_in(directory: Path, count: int) -> tuple[Path, ...]:
    """Return where a broker keeps its logs: in the directory itself, or in so many below it."""
    if count == 1:
        return (directory,)
    return tuple(directory / f"logs-{number}" for number in range(1, count + 1))


def seed_of_broker(seed: int, broker_id: int) -> int:
    """Return what the broker's own randomness starts from in a run of this seed."""
    return seed * SEED_STRIDE + broker_id
