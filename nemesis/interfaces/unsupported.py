"""``Unsupported``: a part that a runtime does not have, with the reason.

A part is either an implementation or an ``Unsupported`` value. Who needs the part asks ``supported`` for it; the run
never gets that far, because ``nemesis.running.preflight`` refuses a fault whose parts are not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from nemesis.interfaces.errors import FaultUnsupported

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part that a runtime does not have. ``reason`` is a clause that fits behind a colon."""

    reason: str


def supported(part: P | Unsupported) -> P:
    """Return the part; raises ``FaultUnsupported`` with the reason when the runtime does not have it."""
    if isinstance(part, Unsupported):
        raise FaultUnsupported(f"the runtime lacks a part that this fault needs: {part.reason}")
    return part
