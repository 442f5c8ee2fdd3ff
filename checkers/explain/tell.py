"""What an event says, as a clause in plain words: who did what, with the values that properties speak about.

Each kind of event that can prove something has a function in ``clauses``. A kind without one is told by its name.
"""

from __future__ import annotations

from nemesis.checkers.explain.clauses import CLAUSES
from nemesis.checkers.explain.foreign_operations import FUNCTIONS, foreign_operation
from nemesis.checkers.explain.producer_requests import is_producer_request, producer_request
from nemesis.checkers.explain.words import duration
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM


def tell(event: Event) -> str:
    """Return the clause, in the past tense, without a capital letter or a full stop."""
    if event.topic is None and event.f in FUNCTIONS:
        return foreign_operation(event)
    if is_producer_request(event):
        return producer_request(event)
    return CLAUSES.get(event.kind, _by_name)(event)


def since(earlier: Event, later: Event) -> str:
    """Return how long after the other one an event came; nothing if nobody can know, or the clause says when."""
    if later.kind in (Kind.END_STATE, Kind.REPLICA_OFFSETS):
        return ""
    if min(earlier.time, later.time) >= 0:
        apart = later.time - earlier.time
        if apart == 0:
            return "at the same moment"
        return f"{duration(abs(apart))} {'later' if apart > 0 else 'earlier'}"
    if later.zxid and earlier.zxid and later.time < 0 and earlier.time < 0:
        log = "the metadata log's" if later.process == QUORUM else "ZooKeeper's"
        return f"after that in {log} order" if later.zxid > earlier.zxid else ""
    return ""


def _by_name(event: Event) -> str:
    return f"{event.process} recorded {event.kind.replace('-', ' ')}"
