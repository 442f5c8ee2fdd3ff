"""The time-outs and intervals of a run's configuration on which the time of a recovery depends.

The harness records them, so that a history alone decides whether a recovery was late. What the scenario does not set
has the default of Kafka 3.9, which the reference shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.history.vocabulary.harness import (
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    FETCH_BACKOFF,
    FETCH_TIMEOUT,
    FETCH_WAIT,
    LAG_TIME,
    SESSION_TIMEOUT,
    TICK,
)
from nemesis.scenarios.scenario import Scenario

_DEFAULTS_MS: Final[Mapping[str, int]] = MappingProxyType(
    {
        SESSION_TIMEOUT: 18_000,
        LAG_TIME: 30_000,
        FETCH_TIMEOUT: 30_000,
        FETCH_BACKOFF: 1_000,
        FETCH_WAIT: 500,
        CONTROL_TIMEOUT: 30_000,
        CONTROL_BACKOFF: 100,
    }
)


def timeout_settings(scenario: Scenario) -> dict[str, int]:
    """Return the settings by name, in milliseconds."""
    configured = scenario.broker_properties
    settings = {name: int(str(configured.get(name, ms))) for name, ms in _DEFAULTS_MS.items()}
    return {TICK: scenario.zookeeper.tick_time_ms, **settings}
