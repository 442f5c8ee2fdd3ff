"""What the controller had certainly seen of ZooKeeper when it read the settings for an election: a bound of its lag.

A session's view of ZooKeeper never goes back. So whatever a controller reads is at least as new as what it knew before:

* the state of the partition that its election replaces: it is compared and set, and known before the settings are read;
* the grant of its controller epoch;
* the ends of the registrations of the members of that state's ISR. The settings are asked for only when no member is
  alive. A member that has lost a log directory may be dead to the controller while it is registered: its end is left
  out.

Limits: a broker that is shutting down, or refused to open the replica (KAFKA_STORAGE_ERROR) before it notified of its
log directory, counts as alive here until it is gone. It matters only if the broker goes, and the permission is taken
back, between the reading of the settings and the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row

LOG_DIR_EVENTS: Final = "/log_dir_event_notification/"


class Readings:
    """Reads the znodes of a whole history once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._grants: list[tuple[int, int]] = []
        self._registrations: dict[int, list[tuple[int, bool]]] = {}
        self._failures: dict[int, list[int]] = {}
        for _, event in znodes.changes(rows):
            zxid, path = event.zxid or 0, event.path or ""
            if path == znodes.CONTROLLER_EPOCH and event.controller_epoch is not None:
                self._grants.append((event.controller_epoch, zxid))
            elif path.startswith(znodes.BROKER_IDS) and event.node is not None:
                is_there = event.zk_op != "delete"
                self._registrations.setdefault(event.node, []).append((zxid, is_there))
            elif path.startswith(LOG_DIR_EVENTS) and (broker := _broker(event.data)) is not None:
                self._failures.setdefault(broker, []).append(zxid)

    def after(self, change: znodes.StateChange) -> int:
        """Return the zxid that the controller had seen before it read the settings for this change."""
        zxid = change.event.zxid or 0
        before = change.previous
        known = 0 if before is None else before.zxid or 0
        known_zxids = [known]
        for epoch, granted_at in self._grants:
            if epoch == change.event.controller_epoch and granted_at < zxid:
                known_zxids.append(granted_at)
        members = (before.isr if before is not None else None) or ()
        ends = (self._end(member, known, zxid) for member in members)
        return max([*known_zxids, *(ended_at for ended_at in ends if ended_at is not None)])

    def _end(self, broker: int, after: int, before: int) -> int | None:
        """When the registration that stood at ``after`` ended; None if it did not, or says nothing of the replica."""
        was_there, since = False, 0
        for zxid, is_there in self._registrations.get(broker, ()):
            if zxid <= after:
                since = since if was_there and is_there else zxid
                was_there = is_there
            elif zxid < before and was_there and not is_there:
                failures = self._failures.get(broker, ())
                return None if any(since < failed_at < before for failed_at in failures) else zxid
        return None


def _broker(data: str | None) -> int | None:
    broker = znodes.object_in(data).get("broker")
    return broker if type(broker) is int else None
