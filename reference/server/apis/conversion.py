"""Small translations between kio's messages and Python values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from reference.protocol.schema import response_class

_MILLISECOND = timedelta(milliseconds=1)
NO_THROTTLE = timedelta(0)


def milliseconds(duration: timedelta) -> int:
    """Whole milliseconds of a duration in a message."""
    return duration // _MILLISECOND


def response_of(message: Any) -> type[Any]:
    """The response class of a request message, of the same version."""
    return response_class(type(message))
