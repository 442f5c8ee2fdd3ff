"""Reference brokers and brokers of Apache Kafka in one cluster: ids 1 to N run the reference, all others run Kafka.

Either kind is controller, leader and follower of the other. What cannot be done to one kind is refused for the cluster.
The reference's traces are kept beside the logs of the processes and are not judged: without those of the other brokers
they would convict a correct cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from nemesis.history.sources import EventSource
from nemesis.interfaces.brokers import Containers
from nemesis.interfaces.runtime import Missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.support.errors import UsageError
from nemesis.targets.base import BrokerEndpoint, BrokerProgram, uses_zookeeper
from nemesis.targets.kafka.properties import internal_topics
from nemesis.targets.kafka.target import BROKER_LOGS, VERSION, KafkaTarget
from nemesis.targets.reference import ReferenceTarget

REFERENCE: Final = "reference"
"""The option with the number of reference brokers."""
NO_CONTAINERS: Final = Unsupported("a cluster of both kinds of brokers runs on this machine only")


class MixedTarget:
    """The two targets, and how many brokers run the reference."""

    name = "mixed"

    def __init__(self, reference_count: int = 1, kafka: KafkaTarget | None = None) -> None:
        self._reference_count = reference_count
        self._reference = ReferenceTarget()
        self._kafka = KafkaTarget() if kafka is None else kafka

    @property
    def observes(self) -> frozenset[EventSource]:
        """What Kafka's brokers show."""
        return self._kafka.observes

    @property
    def options(self) -> dict[str, str]:
        return {REFERENCE: str(self._reference_count), **self._kafka.options}

    def with_options(self, options: Mapping[str, str]) -> Self:
        """Return the target with another number of reference brokers, or another Kafka; raises ``UsageError``."""
        count = options.get(REFERENCE, "1")
        if not count.isdecimal() or int(count) < 1:
            raise UsageError(f"--{REFERENCE} is {count}: expected a number of brokers above 0")
        others = {name: value for name, value in options.items() if name != REFERENCE}
        if BROKER_LOGS in others:
            raise UsageError(
                f"--{BROKER_LOGS}: the brokers of the reference do not log as Kafka's do: leave it out"
            )
        kafka = self._kafka.with_options(others)
        if not uses_zookeeper(kafka):
            raise UsageError(
                f"--{VERSION} {kafka.options[VERSION]}: expected a release before 4.0, because the reference needs "
                "ZooKeeper"
            )
        return type(self)(int(count), kafka)

    def make_ready(self, say: Callable[[str], None]) -> None:
        """Make what Kafka needs."""
        self._kafka.make_ready(say)

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the configuration of a broker of its kind; raises ``UsageError``."""
        target = self._target_of(endpoint.broker_id)
        agreed = {**internal_topics(properties), **properties}
        return target.broker_properties(_without_judged_trace(endpoint), agreed)

    def missing(self, properties: Mapping[str, object]) -> Missing:
        """Return what either kind of broker makes impossible, and containers."""
        return {
            **self._reference.missing(properties),
            **self._kafka.missing(properties),
            Containers: NO_CONTAINERS,
        }

    def broker_program(
        self,
        broker_id: int,
        config_file: Path,
        mutant: str | None,
        *,
        python: str = sys.executable,
        disk_commands: Path | None = None,
    ) -> BrokerProgram:
        """Return what starts its kind of broker."""
        return self._target_of(broker_id).broker_program(
            broker_id, config_file, mutant, python=python, disk_commands=disk_commands
        )

    def _target_of(self, broker_id: int) -> ReferenceTarget | KafkaTarget:
        return self._reference if broker_id <= self._reference_count else self._kafka


def _without_judged_trace(endpoint: BrokerEndpoint) -> BrokerEndpoint:
    """Return the endpoint with its trace, if it has one, among the logs of the processes."""
    if endpoint.trace_file is None:
        return endpoint
    logs = endpoint.trace_file.parent.parent / "logs"
    return replace(endpoint, trace_file=logs / f"trace-of-{endpoint.trace_file.name}")
