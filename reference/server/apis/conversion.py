"""Small translations between kio's messages and Python values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from reference.protocol.schema import response_class

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


def response_of(message: Any) -> type[Any]:
    """The response class of a request message, of the same version."""
    return response_class(type(message))
