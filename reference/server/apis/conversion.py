"""Small translations between kio's messages and Python values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from nemesis.reference.model import FetchIsolation, LeaderRecoveryState
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.protocol.schema import response_class

_READ_COMMITTED = 1
_MILLISECOND = timedelta(milliseconds=1)
NO_THROTTLE = timedelta(0)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


def milliseconds(duration: timedelta) -> int:
    """Whole milliseconds of a duration in a message."""
    return duration // _MILLISECOND


def timestamp(time_ms: int) -> datetime:
    """Milliseconds since 1970 as messages have them; the last moment there is for what lies beyond it."""
    return _EPOCH + timedelta(milliseconds=min(time_ms, _LAST_MS))


def leader_recovery_state(item: Any) -> LeaderRecoveryState:
    """What a partition of a request says of it (below its version: RECOVERED); one that does not exist closes the
    connection: the request has no field that could say what is wrong with it."""
    value = getattr(item, "leader_recovery_state", 0)
    try:
        return LeaderRecoveryState(value)
    except ValueError:
        raise CloseConnectionError(f"there is no leader recovery state {value}") from None


def consumer_isolation(isolation_level: int) -> FetchIsolation:
    """Up to where a consumer reads with the isolation level of its request."""
    if isolation_level == _READ_COMMITTED:
        return FetchIsolation.TXN_COMMITTED
    return FetchIsolation.HIGH_WATERMARK


def response_of(message: Any) -> type[Any]:
    """The response class of a request message, of the same version."""
    return response_class(type(message))
