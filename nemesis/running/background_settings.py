"""The properties of a run's configuration on which background work and elections depend.

The harness records them, so that a history alone decides whether that work was done. What the scenario does not set has
the default of Kafka 3.9, which the reference shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.history.vocabulary.harness import (
    BALANCE_ENABLED,
    BALANCE_INTERVAL,
    BALANCE_PERCENTAGE,
    CLEANABLE_PERCENTAGE,
    CLEANER_BACKOFF,
    CLEANER_ENABLED,
    CLEANUP_POLICY,
    COMPACTION_LAG,
    DELETE_RETENTION,
    LOG_START_INTERVAL,
    MARK_INTERVAL,
    MOVE_QUOTA,
    RECOVERY_POINT_INTERVAL,
    RETENTION_BYTES,
    RETENTION_INTERVAL,
    RETENTION_MS,
    ROLLS,
    SEGMENT_BYTES,
    UNCLEAN_ELECTIONS,
)
from nemesis.scenarios.scenario import Scenario

_DEFAULTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        BALANCE_ENABLED: True,
        BALANCE_INTERVAL: 300,
        BALANCE_PERCENTAGE: 10,
        RETENTION_BYTES: -1,
        RETENTION_INTERVAL: 300_000,
        UNCLEAN_ELECTIONS: False,
        SEGMENT_BYTES: 1_073_741_824,
        MARK_INTERVAL: 5_000,
        RECOVERY_POINT_INTERVAL: 60_000,
        LOG_START_INTERVAL: 60_000,
        CLEANER_BACKOFF: 15_000,
        CLEANER_ENABLED: True,
        COMPACTION_LAG: 0,
        DELETE_RETENTION: 86_400_000,
        MOVE_QUOTA: 2**63 - 1,
    }
)


_DELETE: Final = "delete"
_RETENTION_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {RETENTION_MS: 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
)
_WEEK_MS: Final = 604_800_000
_CLEANABLE_RATIO: Final = 0.5


def background_settings(scenario: Scenario) -> dict[str, int]:
    """Return the properties by name, each in the unit of its name; a truth value is 0 or 1, and a ratio in percent.

    Retention is left out where brokers compact logs by default: what it then deletes, and when, is the cleaner's.
    """
    configured = scenario.broker_properties
    ratio = float(str(configured.get(CLEANABLE_PERCENTAGE, _CLEANABLE_RATIO)))
    known = {name: _number(str(configured.get(name, value))) for name, value in _DEFAULTS.items()}
    known |= {name: _number(str(configured[name])) for name in ROLLS if name in configured}
    if str(configured.get(CLEANUP_POLICY, _DELETE)) != _DELETE:
        del known[RETENTION_BYTES]
    else:
        known[RETENTION_MS] = _retention_ms(configured)
    return known | {CLEANABLE_PERCENTAGE: round(100 * ratio)}


def _retention_ms(configured: Mapping[str, object]) -> int:
    """Return ``log.retention.ms``, which comes before the same bound in minutes, and that before the one in hours."""
    for name, unit in _RETENTION_UNITS.items():
        if name in configured:
            bound = int(str(configured[name]))
            return bound if bound < 0 else bound * unit
    return _WEEK_MS


def _number(text: str) -> int:
    """Return the number that a configuration's value is."""
    words = {"true": 1, "false": 0}
    return words[text.lower()] if text.lower() in words else int(text)
