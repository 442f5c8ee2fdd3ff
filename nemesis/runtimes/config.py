"""What a cluster of real processes is made from, on this machine or in containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nemesis.support.choices import choose
from nemesis.targets import TARGETS, Target


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """``broker_properties`` go to every broker, under Kafka's names. ``run_directory`` receives every file."""

    broker_count: int
    client_count: int
    run_directory: Path
    broker_properties: Mapping[str, object] = field(default_factory=dict)
    zookeeper_tick_time_ms: int = 500
    log_dirs: int = 1
    """Of each broker. Containers have one, whatever this says."""
    mutant: str | None = None
    seed: int = 0
    target: str = "reference"
    target_options: Mapping[str, str] = field(default_factory=dict)
    tracing: bool = True
    """Whether brokers record what they do; without it there is nothing to check, only to measure."""
    start_timeout_s: float = 40.0
    """For ZooKeeper, and again for the brokers, to answer."""

    def __post_init__(self) -> None:
        """Raises ``UsageError`` when there is no such target, or none with these options."""
        _ = self.chosen_target

    @property
    def chosen_target(self) -> Target:
        """The target with its options."""
        return choose(TARGETS, self.target).with_options(self.target_options)
