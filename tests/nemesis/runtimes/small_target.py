"""A target whose brokers are small programs that accept connections."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nemesis.history.sources import EventSource
from nemesis.interfaces.runtime import Missing
from nemesis.targets.base import BrokerEndpoint, BrokerProgram

SMALL_BROKER = Path(__file__).with_name("small_broker.py")


class SmallTarget:
    name = "small"
    observes: frozenset[EventSource] = frozenset()
    options: Mapping[str, str] = MappingProxyType({})

    def __init__(self, missing: Missing | None = None) -> None:
        self._missing = {} if missing is None else missing

    def missing(self, _properties: Mapping[str, object]) -> Missing:
        return self._missing

    def with_options(self, _options: Mapping[str, str]) -> SmallTarget:
        return self

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        own = {"host": endpoint.bind.host, "port": endpoint.bind.port}
        return {**properties, **own, "trace.file": str(endpoint.trace_file)}

    def broker_program(
        self, broker_id: int, config_file: Path, mutant: str | None, **_options: Any
    ) -> BrokerProgram:
        return BrokerProgram([sys.executable, str(SMALL_BROKER), str(config_file)])
