"""The smallest histories that break the properties of logs of which only operations are known."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.breaks.log_operations import (
    Polled,
    Sent,
    Txn,
    poll,
    poll_of,
    send,
    transactions,
)
from nemesis.history.events import Event

LOST_WRITE: Final = ((send(1, 7, 0), poll(2, (1, 8))),)
DUPLICATE: Final = ((send(1, 7, 0), poll(2, (1, 7))),)
INCONSISTENT_OFFSET: Final = ((send(1, 7, 0), poll(2, (0, 8))),)
DIRTY_READ: Final = ((send(1, 7, kind="fail"), poll(2, (0, 7))),)
POLL_SKIP: Final = (
    (send(1, 8, 1), poll(2, (0, 7), (2, 9))),
    (send(1, 8, 1), poll(2, (0, 7)), poll(3, (2, 9))),
)
NONMONOTONIC_POLL: Final = ((poll(1, (0, 7), (1, 8)), poll(2, (1, 8))),)
NONMONOTONIC_SEND: Final = ((send(1, 7, 5), send(2, 8, 4)),)

EACH_OTHER: Final = (
    Txn(0, 10, [Sent("x", 1, 0), Polled("y", [(0, 2)])], "0"),
    Txn(1, 11, [Sent("y", 2, 0), Polled("x", [(0, 1)])], "1"),
)
INTERLEAVED: Final = (
    Txn(0, 10, [Sent("x", 1, 0), Sent("x", 3, 2)], "0"),
    Txn(1, 11, [Sent("x", 2, 1)], "1"),
)
LATER_SEND: Final = (
    Txn(0, 10, [Polled("x", [(0, 1)])], "0"),
    Txn(20, 30, [Sent("y", 2, 0)], "0"),
    Txn(1, 31, [Polled("y", [(0, 2)]), Sent("x", 1, 0)], "1"),
)
POLLED_BEFORE_SENT: Final = (
    Txn(0, 10, [Polled("x", [(0, 1)])], "0"),
    Txn(20, 30, [Sent("x", 1, 0)], "1"),
)
TORN: Final = (
    Txn(0, 10, [Sent("x", 1, None), Sent("y", 2, None)], "0", "info"),
    Txn(11, 12, [Sent("y", 3, 0)], "1"),
    Txn(13, 14, [Polled("x", [(0, 1)])], "1"),
    Txn(15, 16, [Polled("y", [(0, 3)])], "1"),
    Txn(17, 18, [Polled("y", [])], "1"),
)
"""A transaction in doubt of which one record was polled, and the other not, though its log was read to the end."""
OWN_RECORD: Final = (Txn(0, 10, [Sent("x", 1, 0), Polled("x", [(0, 1)])], "0"),)


def _history(*txns: Txn) -> tuple[Event, ...]:
    return tuple(transactions(*txns))


UNSEEN: Final = (
    (send(1, 7, 0), send(2, 8, 1), *poll_of(3, 4, (0, 7)), *poll_of(5, 6)),
    (send(1, 7, 0), send(2, 8), *poll_of(3, 4, (0, 7)), *poll_of(5, 6)),
    _history(*TORN),
)
PRECOMMITTED_READ: Final = (_history(*OWN_RECORD),)
CYCLES: Final[Mapping[str, tuple[tuple[Event, ...], ...]]] = MappingProxyType(
    {
        "G0": (_history(*INTERLEAVED),),
        "G1c": (_history(*EACH_OTHER),),
        "G1c-process": (_history(*LATER_SEND),),
        "G1c-realtime": (_history(*POLLED_BEFORE_SENT),),
    }
)
"""Of transactions over logs; the key is the name of the property."""
