"""The reference cluster as a target: ``python -m nemesis.reference CONFIG.json``, one process per broker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from nemesis.history.sources import ALL_SOURCES, EventSource
from nemesis.interfaces.brokers import AlterPartitionRequests
from nemesis.interfaces.disks import LogTails
from nemesis.interfaces.runtime import Missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.reference.kafka_config import ConfigError, KafkaConfig
from nemesis.support.errors import UsageError
from nemesis.targets.base import (
    BrokerEndpoint,
    BrokerProgram,
    listener_properties,
    refuse_options,
    refuse_runtime_properties,
)


class ReferenceTarget:
    """Our own implementation of Kafka's controller and broker, correct or with one planted bug."""

    name = "reference"
    observes = frozenset(ALL_SOURCES) - {EventSource.REPLICA_SAMPLES}

    @property
    def options(self) -> dict[str, str]:
        return {}

    def with_options(self, options: Mapping[str, str]) -> Self:
        """There is nothing to choose."""
        refuse_options(self.name, options)
        return self

    def make_ready(self, say: Callable[[str], None]) -> None:
        """It is part of nemesis."""

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Return a validated configuration; raises ``UsageError`` naming the property that is wrong."""
        refuse_runtime_properties(properties)
        all_properties: dict[str, object] = {
            **properties,
            "broker.id": endpoint.broker_id,
            **listener_properties(endpoint, properties),
            "zookeeper.connect": endpoint.zookeeper_connect,
            "log.dirs": [str(log_dir) for log_dir in endpoint.log_dirs],
            "trace.file": None if endpoint.trace_file is None else str(endpoint.trace_file),
            "random.seed": endpoint.seed,
        }
        try:
            KafkaConfig.from_properties(all_properties)
        except ConfigError as error:
            raise UsageError(str(error)) from None
        return all_properties

    def missing(self, properties: Mapping[str, object]) -> Missing:
        """Return AlterPartition where leaders write their ISRs themselves, and log tails where all is synced."""
        missing: dict[type, Unsupported] = {}
        if properties.get("inter.broker.protocol.version") == "2.6":
            missing[AlterPartitionRequests] = Unsupported(
                "under inter.broker.protocol.version 2.6 nobody sends AlterPartition"
            )
        if properties.get("log.flush.interval.messages") == 1:
            missing[LogTails] = Unsupported(
                "with log.flush.interval.messages 1 a broker has nothing that is not synced"
            )
        return missing

    def broker_program(
        self,
        broker_id: int,  # noqa: ARG002 - its configuration says it
        config_file: Path,
        mutant: str | None,
        *,
        python: str = sys.executable,
        disk_commands: Path | None = None,
    ) -> BrokerProgram:
        """Return the reference's own entry point, or the launcher where the harness has a hand in the process."""
        options = [] if mutant is None else ["--mutant", mutant]
        if disk_commands is not None:
            options += ["--disk-commands", str(disk_commands)]
        module = "nemesis.runtimes.reference_launcher" if options else "nemesis.reference"
        return BrokerProgram([python, "-m", module, str(config_file), *options])
