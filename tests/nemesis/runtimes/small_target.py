"""A target whose brokers are small programs that accept connections."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nemesis.targets.base import BrokerEndpoint

SMALL_BROKER = Path(__file__).with_name("small_broker.py")


class SmallTarget:
    name = "small"

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        own = {"host": endpoint.bind.host, "port": endpoint.bind.port}
        return {**properties, **own, "trace.file": str(endpoint.trace_file)}

    def broker_command(self, config_file: Path, mutant: str | None, **_options: Any) -> list[str]:
        return [sys.executable, str(SMALL_BROKER), str(config_file)]
