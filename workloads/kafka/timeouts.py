"""Time-outs as requests state them."""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import cast

from kio.static.primitive import i32Timedelta


@lru_cache(maxsize=1024)
def milliseconds(value: int) -> i32Timedelta:
    """Return a time-out as kio writes it."""
    return cast("i32Timedelta", datetime.timedelta(milliseconds=value))
