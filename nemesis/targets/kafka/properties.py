"""A scenario's broker properties, translated for a release of Kafka.

Scenarios use the names of Kafka 3.9, which the reference has, too; most pass through as they are. Time-outs that a
scenario leaves out are those of Kafka 3.9 in every release, because the checkers take them for these. Other defaults
are smaller than Kafka's, so that several brokers share a machine. A release that does not know a property ignores it
and logs a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.history.vocabulary.harness import (
    BALANCE_ENABLED,
    BALANCE_INTERVAL,
    BALANCE_PERCENTAGE,
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    SEGMENT_BYTES,
    SESSION_TIMEOUT,
    UNCLEAN_ELECTIONS,
)
from nemesis.support.errors import UsageError
from nemesis.targets.kafka.releases import DEFAULT_VERSION, Release

LEFT_OUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "controller.retry.backoff.ms": "Kafka always waits 100 ms",
        "replica.alter.log.dirs.io.max.bytes.per.second": "in Kafka it can only be set while a broker runs",
    }
)
"""Properties of the reference that a Kafka broker's configuration does not have, and why."""

TIMEOUTS_MS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "zookeeper.session.timeout.ms": 18_000,
        "replica.lag.time.max.ms": 30_000,
        "replica.socket.timeout.ms": 30_000,
        "replica.fetch.backoff.ms": 1_000,
        "replica.fetch.wait.max.ms": 500,
        "controller.socket.timeout.ms": 30_000,
    }
)
"""The defaults of Kafka 3.9."""

DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
    {
        "auto.create.topics.enable": False,
        "background.threads": 2,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 4 * 2**20,
        "num.io.threads": 4,
        "num.network.threads": 2,
        "zookeeper.connection.timeout.ms": 600_000,
    }
)
"""A topic exists because a client asked for it, and a broker that is cut off from ZooKeeper waits for it."""

PARTITION_COUNTS: Final = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
PARTITIONS: Final = 4
"""Of a topic of Kafka's own; 50 by default in Kafka."""
REPLICATION_FACTORS: Final = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)

QUORUM_LEFT_OUT: Final = frozenset(
    {"zookeeper.session.timeout.ms", "zookeeper.connection.timeout.ms", CONTROL_TIMEOUT}
)
"""Properties that KRaft brokers do not have, in addition to ``LEFT_OUT``."""
QUORUM_REFUSED: Final = ("control.plane.listener.name", "inter.broker.protocol.version")
BROKER_SESSION: Final = "broker.session.timeout.ms"
HEARTBEAT: Final = "broker.heartbeat.interval.ms"
HEARTBEATS_PER_SESSION: Final = 4
"""Kafka's defaults are 9 s and 2 s."""

LARGER_SEGMENTS_SINCE: Final = (4, 0)
MIN_SEGMENT_BYTES: Final = 1_048_576
"""What a segment has at least since then (KIP-1030): scenarios about segments have smaller ones."""

REQUEST_TIMEOUT: Final = "request.timeout.ms"
ROLES: Final = "process.roles"
PROTOCOL: Final = "inter.broker.protocol.version"
OLDEST_PROTOCOL: Final = (2, 8)
"""From this protocol on topics have ids (KIP-516), by which the clients of the harness fetch."""


WHOLE_NUMBERS: Final = (*TIMEOUTS_MS, CONTROL_BACKOFF, BALANCE_INTERVAL, BALANCE_PERCENTAGE)
"""What the harness reads to know how long a recovery or a round of background work may take."""
TRUTH_VALUES: Final = (BALANCE_ENABLED, UNCLEAN_ELECTIONS)
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,19}")


def translated(properties: Mapping[str, object], release: Release) -> dict[str, str]:
    """Return the properties for brokers of this release; raises ``UsageError`` for one that it cannot have."""
    require_known(properties, release)
    kept = {
        name: value
        for name, value in properties.items()
        if name not in LEFT_OUT and value is not None
    }
    settings: dict[str, object] = {**DEFAULTS, **TIMEOUTS_MS, **internal_topics(kept)}
    # Kafka's controller gives a request up after this time; its socket time-out is for connecting only.
    settings[REQUEST_TIMEOUT] = kept.get(CONTROL_TIMEOUT, TIMEOUTS_MS[CONTROL_TIMEOUT])
    chosen = {**settings, **kept}
    if not release.uses_zookeeper:
        chosen = _for_quorum(chosen)
    return {name: text_of(value) for name, value in chosen.items()}


def internal_topics(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of ``__consumer_offsets`` and ``__transaction_state``, on which all brokers must agree.

    A broker looks for a group by its own number of partitions, also when another broker created the topic.
    """
    replicas = properties.get("default.replication.factor") or 1
    return {
        **dict.fromkeys(PARTITION_COUNTS, PARTITIONS),
        **dict.fromkeys(REPLICATION_FACTORS, replicas),
        "transaction.state.log.min.isr": properties.get("min.insync.replicas") or 1,
    }


def _for_quorum(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a KRaft node: its session lasts as long as one in ZooKeeper would."""
    session_ms = int(str(settings[SESSION_TIMEOUT]))
    sessions = {BROKER_SESSION: session_ms, HEARTBEAT: max(1, session_ms // HEARTBEATS_PER_SESSION)}
    others = {name: value for name, value in settings.items() if name not in QUORUM_LEFT_OUT}
    return {**sessions, **others}


def protocol_of(properties: Mapping[str, object], release: Release) -> tuple[int, int]:
    """Return the version that brokers speak with each other; raises ``UsageError`` when it is not a version."""
    asked = properties.get(PROTOCOL)
    if asked is None:
        return release.line
    major, _, minor = str(asked).split("-")[0].partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise UsageError(
            f"broker configuration: {PROTOCOL} is {asked!r}: expected a version such as 3.9"
        )
    return int(major), int(minor)


def require_known(properties: Mapping[str, object], release: Release) -> None:
    """Raise ``UsageError`` for a property that brokers of this release, or the clients of the harness, cannot have."""
    _require_values(properties)
    _require_the_harness_choices(properties)
    if not release.uses_zookeeper:
        _require_none_of_zookeeper(properties, release)
    if release.line >= LARGER_SEGMENTS_SINCE:
        _require_large_segments(properties, release)
    protocol = protocol_of(properties, release)
    if protocol < OLDEST_PROTOCOL:
        raise UsageError(
            f"broker configuration: {PROTOCOL} is {properties[PROTOCOL]!r}: with the target kafka expected 2.8 or "
            "newer, because topics have no ids before"
        )
    if protocol > release.line:
        raise UsageError(
            f"broker configuration: {PROTOCOL} is {properties[PROTOCOL]!r}: Kafka {release.name} has none newer "
            "than its own"
        )


def _require_none_of_zookeeper(properties: Mapping[str, object], release: Release) -> None:
    for name in QUORUM_REFUSED:
        if properties.get(name) is not None:
            raise UsageError(
                f"broker configuration: {name} is {properties[name]!r}: Kafka {release.name} has no such property"
            )


def _require_large_segments(properties: Mapping[str, object], release: Release) -> None:
    size = str(properties.get(SEGMENT_BYTES) or MIN_SEGMENT_BYTES)
    if _WHOLE_NUMBER.fullmatch(size) is None or int(size) < MIN_SEGMENT_BYTES:
        raise UsageError(
            f"broker configuration: {SEGMENT_BYTES} is {size}: expected at least {MIN_SEGMENT_BYTES} for Kafka "
            f"{release.name}: choose --kafka-version {DEFAULT_VERSION}, or a scenario without small segments"
        )


def _require_values(properties: Mapping[str, object]) -> None:
    """Raise ``UsageError`` where the harness could not read a value."""
    for name, value in properties.items():
        if name in WHOLE_NUMBERS and _WHOLE_NUMBER.fullmatch(str(value)) is None:
            raise UsageError(
                f"broker configuration: {name} is {text_of(value)}: expected a whole number"
            )
        if name in TRUTH_VALUES and str(value).lower() not in ("true", "false"):
            raise UsageError(
                f"broker configuration: {name} is {text_of(value)}: expected true or false"
            )


def _require_the_harness_choices(properties: Mapping[str, object]) -> None:
    """Raise ``UsageError`` for a mode, or for a time-out that differs from the one that the checkers know."""
    if properties.get(ROLES) is not None:
        raise UsageError(
            f"broker configuration: {ROLES} follows from the release with the target kafka: leave it out"
        )
    asked = properties.get(REQUEST_TIMEOUT)
    expected = properties.get(CONTROL_TIMEOUT, TIMEOUTS_MS[CONTROL_TIMEOUT])
    if asked is not None and str(asked) != str(expected):
        raise UsageError(
            f"broker configuration: {REQUEST_TIMEOUT} is {asked}: expected {expected} as in {CONTROL_TIMEOUT}, from "
            "which the bound of late-recovery follows: leave it out"
        )


def text_of(value: object) -> str:
    """Return a value as a properties file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
