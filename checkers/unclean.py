"""May leaders be elected from outside the in-sync replicas? The configuration says so, not the election.

An unclean election loses records, and a topic may allow that. So what it causes is excused, but only under a
configuration that permits it (``unclean.leader.election.enable``): a controller that elects uncleanly without
permission is broken, and everything that follows is its doing.

Brokers tell of their configuration in the ``detail`` of ``broker-started``. One broker that permits is enough, for
any broker may be the controller. A history in which none tells (an older one, another system's) convicts nobody.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from checkers.segment import Segment
from history.events import Kind

UNCLEAN: Final = "unclean"
"""The detail of a ``leader-elected`` event."""
SETTING: Final = "unclean.leader.election.enable"


class Permission(IntEnum):
    """What the brokers said; of two stretches of a history the greater one counts."""

    UNTOLD = 0
    FORBIDDEN = 1
    PERMITTED = 2

    @property
    def excuses(self) -> bool:
        """Whether the losses of an unclean election are excused; also when nothing is known."""
        return self is not Permission.FORBIDDEN


def permission(segment: Segment) -> Permission:
    """Return what the ``broker-started`` events of a stretch say; needs the column ``detail``."""
    started = segment.where(segment.is_kind(Kind.BROKER_STARTED))
    return max(map(permission_of, started.values("detail")), default=Permission.UNTOLD)


def permission_of(detail: str | None) -> Permission:
    """Return what one ``broker-started`` event's detail says; ``UNTOLD`` if it cannot be read."""
    try:
        told: Any = msgspec.json.decode(detail or "null")
    except msgspec.DecodeError:
        return Permission.UNTOLD
    enabled = told.get(SETTING) if isinstance(told, dict) else None
    if not isinstance(enabled, bool):
        return Permission.UNTOLD
    return Permission.PERMITTED if enabled else Permission.FORBIDDEN
