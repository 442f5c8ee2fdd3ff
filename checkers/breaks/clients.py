"""The smallest histories that break the properties of what clients see."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import (
    PERMITTED,
    TP,
    become_leader,
    client,
    elected,
    final,
    high_watermark,
    history,
    marker,
    poll,
    send,
    state,
)
from nemesis.history.events import Event


def returned_nothing(
    time: int, *, mark: int, position: int = 0, start: int = 0, **columns: Any
) -> list[Event]:
    """Return a final poll that leader 1 answers with these offsets and without a batch."""
    offsets = {"log_start_offset": start, "node": 1}
    return poll(time, position, {}, process="final-0", mark=mark, **{**offsets, **columns})


def answered(time: int, end: int, *, node: int = 1) -> list[Event]:
    """Return a final reader's request for the end of the partition, and the answer."""
    ask = ("latest-offset", time)
    return [
        client(time, "final-0", "invoke", *ask, node=node),
        client(time + 1, "final-0", "ok", *ask, node=node, offset=end),
    ]


def missed(time: int, *, position: int = 0, mark: int = 1, error: str = "NO_RECORDS") -> Event:
    """Return the end of a final read that did not reach the end of its partition."""
    reached: dict[str, Any] = {"offset": position, "high_watermark": mark, "log_start_offset": 0}
    return Event(
        time=time, process="final-0", kind="final-read", seq=time, error=error, **reached, **TP
    )


LOST_WRITE: Final = (
    history(send(1, 7, offset=0), send(3, 8, offset=1), poll(9, 0, {1: 8})),
    history(
        send(1, 7, offset=0, producer_id=8),
        marker(3, 1, 1, first=0, outcome="abort"),
        send(5, 9, offset=2),
        poll(9, 0, {2: 9}),
    ),
)
UNSEEN: Final = (
    history(send(1, 7, offset=0), final(9, {})),
    history(send(1, 7, offset=0)),
    history(
        PERMITTED,
        send(1, 7, offset=0),
        state(8, 9, 1, 0, [1], data='{"leader":1,"isr":[1]}'),
        state(9, 9, 2, 1, [2], data='{"leader":2,"isr":[2]}'),
        elected(4, 9, 2, [2], strategy="unclean"),
        final(9, {}),
    ),
)
WITHHELD: Final = (
    history(
        send(1, 7, offset=0), returned_nothing(3, mark=1), returned_nothing(6, mark=1), missed(9)
    ),
    history(
        become_leader(0, 1, 2, 0),
        send(1, 7, offset=0),
        returned_nothing(3, mark=0),
        answered(5, 1),
        returned_nothing(7, mark=0),
        returned_nothing(10, mark=0),
        missed(13),
    ),
)
STALE_READ_ABOVE_HW: Final = (
    history(high_watermark(1, 1, 0, 2, [1]), poll(3, 0, {0: 7, 1: 8}, mark=1)),
    history(high_watermark(1, 1, 0, 1, [1, 2]), poll(3, 0, {0: 7, 1: 8})),
    history(poll(1, 0, {0: 7}), final(9, {})),
)
DUPLICATE: Final = (
    history(send(1, 7, offset=0, delivery="idempotent"), poll(3, 0, {0: 7, 1: 7})),
    history(send(1, 7, offset=0), poll(3, 0, {0: 7, 1: 7})),
)
INCONSISTENT_OFFSET: Final = (history(send(1, 7, offset=0), poll(3, 0, {0: 8})),)
DIRTY_READ: Final = (history(send(1, 7, "fail", error="NOT_ENOUGH_REPLICAS"), poll(3, 0, {0: 7})),)
NONMONOTONIC_POLL: Final = (
    history(poll(1, 0, {0: 7, 1: 8}), poll(3, 1, {1: 8})),
    history(poll(1, 1, {0: 7, 1: 8})),
)
POLL_SKIP: Final = (
    history(poll(1, 0, {0: 7}), poll(3, 2, {2: 9})),
    history(poll(1, 0, {1: 8})),
    history(marker(1, 1, 0), poll(3, 0, {2: 8})),
    history(marker(1, 1, 3, first=0), poll(3, 0, {4: 8})),
    history(marker(1, 1, 2, first=1, outcome="abort"), poll(3, 0, {3: 8})),
)
NONMONOTONIC_SEND: Final = (history(send(1, 7, offset=5), send(3, 8, offset=4)),)
EARLIER_INCARNATION_READ: Final = (
    history(poll(1, 0, {0: 7}), poll(7, 0, {0: 7, 1: 8}, topic_id="later")),
)
