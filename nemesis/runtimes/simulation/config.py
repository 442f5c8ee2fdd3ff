"""What a simulated cluster is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nemesis.runtimes.simulation.addresses import address_of, names
from nemesis.simulation.links import Latency
from nemesis.support.errors import UsageError
from nemesis.targets import TARGETS
from nemesis.targets.base import BrokerEndpoint, log_dirs_in, seed_of_broker

TARGET = "reference"


@dataclass(frozen=True, kw_only=True)
class SimulationRuntimeConfig:
    """``broker_properties`` go to every broker, under Kafka's names."""

    broker_count: int
    client_count: int
    zookeeper_count: int = 3
    broker_properties: Mapping[str, object] = field(default_factory=dict)
    zookeeper_tick_time_ms: int = 500
    log_dirs: int = 1
    """Of each broker."""
    seed: int = 0
    target: str = TARGET
    latency: Latency = field(default_factory=Latency)
    real_codec: bool = False
    """Whether messages are encoded, as on a real network; otherwise they cross by reference."""
    strike_within_actions: int = 0
    """A kill or a pause strikes between two of this many next actions of a process; 0: while the process waits."""
    start_timeout_s: float = 40.0

    def __post_init__(self) -> None:
        """Raises ``UsageError`` when the target cannot be simulated or a broker property is wrong."""
        if self.target != TARGET:
            raise UsageError(
                f"the target {self.target!r} cannot be simulated: choose another --runtime, or the target {TARGET}"
            )
        for broker in names("broker", self.broker_count):
            self.properties_of(broker)

    def log_dirs_of(self, broker: str) -> list[str]:
        """Return a broker's log directories."""
        result = self.properties_of(broker)["log.dirs"]
        assert isinstance(result, list)
        return result

    def properties_of(self, broker: str) -> dict[str, object]:
        """Return a broker's whole configuration; raises ``UsageError``."""
        address, number = address_of(broker), int(broker.removeprefix("broker-"))
        zookeepers = names("zookeeper", self.zookeeper_count)
        endpoint = BrokerEndpoint(
            broker_id=number,
            bind=address,
            advertised=address,
            zookeeper_connect=",".join(str(address_of(node)) for node in zookeepers),
            log_dirs=log_dirs_in(Path("/data"), self.log_dirs),
            trace_file=None,
            seed=seed_of_broker(self.seed, number),
        )
        return TARGETS[self.target].broker_properties(endpoint, self.broker_properties)
