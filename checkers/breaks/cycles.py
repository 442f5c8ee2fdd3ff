"""The smallest histories that break the properties of transactions, by the name of the anomaly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.breaks.transactions import Micro, append, history, r, together, txn, w
from nemesis.history.events import Event

SEQUENCES: Final = ("process", "realtime")
"""What orders two transactions in addition to their dependencies."""
ORDERED: Final[Mapping[str, list[list[Micro]]]] = MappingProxyType(
    {
        "G0": [[append(5, 1)], [append(5, 2)], [r(5, 2, 1)]],
        "G1c": [[r(5, 1)], [append(5, 1)]],
        "G-single": [[append(5, 1)], [r(5)]],
        "G-nonadjacent": [
            [append(7, 1)],
            [r(5)],
            [append(5, 1), append(6, 1)],
            [r(6, 1), r(7)],
        ],
        "G2-item": [[append(5, 1), r(7)], [r(6)], [r(5), append(6, 1)]],
    }
)
"""By cycle its transactions: the first ends before the second begins, the others are concurrent with both."""


def ordered(name: str, sequence: str) -> tuple[Event, ...]:
    """Return the transactions of ``ORDERED``: the first two of one process (``process``), or of two (``realtime``)."""
    first, second, *others = ORDERED[name]
    return tuple(
        history(
            txn(1, *first, index=(10, 20), process="p"),
            txn(2, *second, index=(30, 40), process="p" if sequence == "process" else "q"),
            *(txn(op, *micro, index=(1, 100)) for op, micro in enumerate(others, start=3)),
        )
    )


def _together(*transactions: list[Micro]) -> tuple[Event, ...]:
    return tuple(together(*transactions))


_FAILED: Final = txn(1, append(5, 1), kind="fail")
WELL_FORMED: Final = (
    _together([append(5, 1)], [append(5, 1)], [r(5), append(6, 1)], [r(6), r(5, 1)]),
)
ANOMALIES: Final[Mapping[str, tuple[tuple[Event, ...], ...]]] = MappingProxyType(
    {
        "garbage-read": (_together([append(5, 1)], [r(5, 1, 9)]),),
        "duplicate-elements": (_together([append(5, 1)], [append(5, 2)], [r(5, 1, 2, 1)]),),
        "incompatible-order": (
            _together(
                [append(5, 1)], [append(5, 2)], [append(5, 3)], [r(5, 1, 3)], [r(5, 1, 2, 3)]
            ),
        ),
        "G1a": (tuple(history(_FAILED, txn(2, r(5, 1)))),),
        "G1b": (_together([append(5, 1), append(5, 2)], [r(5, 1)]),),
        "dirty-update": (tuple(history(_FAILED, txn(2, append(5, 2)), txn(3, r(5, 1, 2)))),),
        "future-read": (_together([r(5, 1), append(5, 1)]),),
        "internal": (
            _together([append(5, 1), r(5)]),
            _together([append(5, 1), r(5, 1), r(5)]),
        ),
        "lost-update": (_together([r(5), append(5, 1)], [r(5), append(5, 2)]),),
        "G0": (
            _together(
                [append(5, 1), append(6, 1)],
                [append(5, 2), append(6, 2)],
                [r(5, 1, 2), r(6, 2, 1)],
            ),
        ),
        "G1c": (_together([append(5, 1), r(6, 1)], [append(6, 1), r(5, 1)]),),
        "G-single": (_together([append(5, 1), append(6, 1)], [r(5), r(6, 1)]),),
        "G-nonadjacent": (
            _together([append(5, 1)], [r(5, 1), r(6)], [append(6, 1)], [r(6, 1), r(5)]),
        ),
        "G2-item": (_together([r(5), append(6, 1)], [r(6), append(5, 1)]),),
        **{
            f"{name}-{sequence}": (ordered(name, sequence),)
            for sequence in SEQUENCES
            for name in ORDERED
        },
        "cycle-exists": (
            tuple(
                history(
                    txn(1, w(5, 1), index=(1, 99)),
                    txn(2, w(5, 2), index=(2, 98)),
                    txn(3, r(5, 1), index=(10, 20)),
                    txn(4, r(5, 2), index=(30, 40)),
                    txn(5, r(5, 1), index=(50, 60)),
                )
            ),
            _together(
                [w(5, 1), w(6, 1)],
                [w(5, 2), w(6, 2)],
                [r(5, 1), r(6, 2)],
            ),
        ),
    }
)
"""Histories of lists that are appended to, of ``cycle-exists`` of registers; the key is the name of the property."""
