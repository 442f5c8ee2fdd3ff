"""The terms of controllers that have finished their failover, in ZooKeeper's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Kind


@dataclass(frozen=True, slots=True)
class Term:
    """The term of a controller that has finished its failover."""

    controller_epoch: int
    granted_zxid: int
    next_zxid: int | None
    """When the next controller was elected; None in the last term."""
    failover: Row


def terms_of(rows: Sequence[Row]) -> list[Term]:
    """Return the terms, oldest first; they need rows of ``znode`` and ``controller-failover``."""
    failovers: dict[int | None, Row] = {}
    for item in rows:
        if item[1].kind == Kind.CONTROLLER_FAILOVER:
            failovers.setdefault(item[1].controller_epoch, item)
    grants = [event for _, event in znodes.epoch_changes(rows) if znodes.is_election(event)]
    successors = [event.zxid for event in grants[1:]]
    return [
        Term(grant.controller_epoch or 0, grant.zxid or 0, next_zxid, failover)
        for grant, next_zxid in zip(grants, [*successors, None], strict=False)
        if (failover := failovers.get(grant.controller_epoch)) is not None
    ]
