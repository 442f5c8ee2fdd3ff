"""The smallest histories that break the properties of what clients see."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    PERMITTED,
    elected,
    final,
    high_watermark,
    history,
    poll,
    send,
)

LOST_WRITE: Final = (history(send(1, 7, offset=0), send(3, 8, offset=1), poll(9, 0, {1: 8})),)
UNSEEN: Final = (
    history(send(1, 7, offset=0), final(9, {})),
    history(send(1, 7, offset=0)),
    history(
        PERMITTED, send(1, 7, offset=0), elected(4, 9, 2, [2], strategy="unclean"), final(9, {})
    ),
)
STALE_READ_ABOVE_HW: Final = (
    history(poll(1, 0, {0: 7, 1: 8}, mark=1)),
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
)
NONMONOTONIC_SEND: Final = (history(send(1, 7, offset=5), send(3, 8, offset=4)),)
EARLIER_INCARNATION_READ: Final = (
    history(poll(1, 0, {0: 7}), poll(7, 0, {0: 7, 1: 8}, topic_id="later")),
)
