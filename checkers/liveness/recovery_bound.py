"""How long a recovery may take: a sum of waits, each of which ends by a time-out of the configuration.

A cluster that a fault has left waits at worst for these, one after the other:

* ZooKeeper expires the session of a broker that fell silent: the session's time-out, at least two ticks, and a tick
  because sessions are looked at once per tick;
* a broker gets a session again and registers: at most the time-out of a session once more, or it would have lost it;
* a control request or its answer was lost: ``controller.socket.timeout.ms``, then ``controller.retry.backoff.ms``;
* the leader takes a follower that does not fetch out of its ISR: ``replica.lag.time.max.ms``, checked every half of it;
* AlterPartition or its answer was lost: the same two settings as for a control request;
* a fetch of a follower was lost: ``replica.socket.timeout.ms``, then ``replica.fetch.backoff.ms``.

What happens between the waits takes no time of its own: a machine on which it does is measured by its ``harness-lag``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Kind
from nemesis.history.vocabulary.harness import (
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    FETCH_BACKOFF,
    FETCH_TIMEOUT,
    LAG_TIME,
    SESSION_TIMEOUT,
    TICK,
)

_SETTINGS: Final = frozenset(
    {
        TICK,
        SESSION_TIMEOUT,
        LAG_TIME,
        FETCH_TIMEOUT,
        FETCH_BACKOFF,
        CONTROL_TIMEOUT,
        CONTROL_BACKOFF,
    }
)


def bound_ms(rows: Iterable[Row]) -> int | None:
    """Return the bound; None if the history does not state every setting."""
    ms = _settings_ms(rows)
    if not ms.keys() >= _SETTINGS:
        return None
    session = _session_ms(ms)
    request = ms[CONTROL_TIMEOUT] + ms[CONTROL_BACKOFF]
    shrink = ms[LAG_TIME] + ms[LAG_TIME] // 2
    fetch = ms[FETCH_TIMEOUT] + ms[FETCH_BACKOFF]
    return (session + ms[TICK]) + session + request + shrink + request + fetch


def session_bound_ms(rows: Iterable[Row]) -> int | None:
    """Return how long a session may last that ZooKeeper hears nothing of; None if the history does not state it."""
    ms = _settings_ms(rows)
    return _session_ms(ms) + ms[TICK] if ms.keys() >= {SESSION_TIMEOUT, TICK} else None


def log_dir_bound_ms(rows: Iterable[Row]) -> int | None:
    """Return how long the loss of a log directory may stay without an effect; None if the history does not state it.

    The session of the broker or of the controller, which ZooKeeper hears nothing of; then a control request that was
    lost. Both had begun before the fault that caused them ended.
    """
    ms = _settings_ms(rows)
    if not ms.keys() >= {SESSION_TIMEOUT, TICK, CONTROL_TIMEOUT, CONTROL_BACKOFF}:
        return None
    return _session_ms(ms) + ms[TICK] + ms[CONTROL_TIMEOUT] + ms[CONTROL_BACKOFF]


def _session_ms(ms: Mapping[str, int]) -> int:
    return max(ms[SESSION_TIMEOUT], 2 * ms[TICK])


def _settings_ms(rows: Iterable[Row]) -> dict[str, int]:
    return {
        event.setting: event.duration_ms or 0
        for _, event in rows
        if event.kind == Kind.TIMEOUT_SETTING and event.setting is not None
    }
