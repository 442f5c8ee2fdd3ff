"""The time-outs and intervals of a run's configuration on which the time of a recovery depends.

The harness records them, so that a history alone decides whether a recovery was late. What the scenario does not set
has the default of Kafka 3.9, which the reference shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from nemesis.history.vocabulary.harness import (
    ABORT_INTERVAL,
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    FETCH_BACKOFF,
    FETCH_TIMEOUT,
    FETCH_WAIT,
    GROUP_DELAY,
    LAG_TIME,
    MEMBER_REBALANCE,
    MEMBER_SESSION,
    SESSION_TIMEOUT,
    STORE_TIMEOUT,
    TICK,
)
from nemesis.scenarios.scenario import Scenario
from nemesis.workloads.groups import Groups, GroupsOptions

_DEFAULTS_MS: Final[Mapping[str, int]] = MappingProxyType(
    {
        SESSION_TIMEOUT: 18_000,
        LAG_TIME: 30_000,
        FETCH_TIMEOUT: 30_000,
        FETCH_BACKOFF: 1_000,
        FETCH_WAIT: 500,
        CONTROL_TIMEOUT: 30_000,
        CONTROL_BACKOFF: 100,
        ABORT_INTERVAL: 10_000,
    }
)


_OF_GROUPS_MS: Final[Mapping[str, int]] = MappingProxyType(
    {GROUP_DELAY: 3_000, STORE_TIMEOUT: 5_000}
)


def timeout_settings(scenario: Scenario) -> dict[str, int]:
    """Return the settings by name, in milliseconds; those of groups only where the workload has groups."""
    settings = {TICK: scenario.zookeeper.tick_time_ms, **_configured(scenario, _DEFAULTS_MS)}
    if scenario.workload.name != Groups.name:
        return settings
    options = msgspec.convert(scenario.workload_options, GroupsOptions)
    members = {
        MEMBER_SESSION: options.session_timeout_ms,
        MEMBER_REBALANCE: options.rebalance_timeout_ms,
    }
    return settings | _configured(scenario, _OF_GROUPS_MS) | members


def _configured(scenario: Scenario, defaults: Mapping[str, int]) -> dict[str, int]:
    configured = scenario.broker_properties
    return {name: int(str(configured.get(name, ms))) for name, ms in defaults.items()}
