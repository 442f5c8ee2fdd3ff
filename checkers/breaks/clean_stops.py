"""The smallest histories in which a log is opened after a clean stop, and is not as it was closed."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, broker, history, started
from nemesis.history.events import Event

_DIRECTORY: Final = "/logs"


def closed(time: int, start: int, end: int, mark: int, **columns: Any) -> Event:
    """Broker 1 has closed its log of t-0 in a clean stop."""
    return broker(time, 1, "log-closed", **_extent(start, end, mark) | columns)


def opened(time: int, start: int, end: int, mark: int, **columns: Any) -> Event:
    """The next process of broker 1 opens its log of t-0."""
    return broker(time, 1, "log-loaded", **_extent(start, end, mark) | {"incarnation": 2} | columns)


def _extent(start: int, end: int, mark: int) -> dict[str, Any]:
    offsets = {"log_start_offset": start, "log_end_offset": end, "high_watermark": mark}
    return offsets | {"log_dir": _DIRECTORY} | TP


CLEAN_STOP_KEEPS_LOGS: Final = tuple(
    history(closed(1, 2, 5, 4), started(2, 1, unclean=False), opened(3, *extent))
    for extent in ((2, 4, 4), (2, 5, 3), (0, 5, 4))
)
