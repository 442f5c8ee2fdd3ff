"""Events of the faults that the nemesis injects.

Writer: the nemesis (process ``nemesis``).
"""

from __future__ import annotations

import json
from typing import Any, Final

from nemesis.history.events import Kind, Word
from nemesis.history.vocabulary.declaring import View, declares

MEASURED: Final = "measured"
"""``effect`` of a fault whose effect was measured when it was injected."""
VERIFIED: Final = "verified"
"""``effect`` of a fault whose end was verified when it was undone."""
NO_EFFECT: Final = "none"
"""``effect`` of either step when nothing was measured."""
LOST: Final = "lost"
"""The measurement of a fault that failed by itself: why it failed."""
LAST_IN_ISR: Final = "last_in_isr"
"""In the intent of a power cut or a damaged log: the partitions whose last running replica in the ISR was struck."""
TRIGGER_MISSED: Final = "its trigger did not come"
"""``error`` of a fault that waited for an event in vain."""


CLIENT_FAULTS: Final = frozenset({"kill-client", "pause-client"})
"""Faults that strike client processes: they explain nothing that brokers do."""


class FaultView(View, frozen=True, kw_only=True):
    """A step of one fault."""

    fault: Word
    fault_id: int


@declares(Kind.FAULT_INVOKE)
class FaultInvoke(FaultView, frozen=True, kw_only=True):
    """The nemesis is about to inject a fault."""

    targets: list[str]
    detail: str
    """What the fault intends: a JSON object."""


@declares(Kind.FAULT_APPLIED, Kind.FAULT_HEALED)
class FaultMeasured(FaultView, frozen=True, kw_only=True):
    """The fault was injected and its effect measured, or it was undone and its end verified."""

    targets: list[str]
    effect: Word
    detail: str
    """What was measured: a JSON object."""

    @property
    def measurements(self) -> dict[str, Any]:
        """What was measured, by name; empty if ``detail`` is not a JSON object."""
        return measurements(self.detail)


@declares(Kind.FAULT_SKIPPED)
class FaultSkipped(FaultView, frozen=True, kw_only=True):
    """The fault was not injected: no node was named in time, another fault held it, or the trigger did not fire."""

    error: Word
    """The reason, as a sentence."""


def measurements(detail: str | None) -> dict[str, Any]:
    """Return the JSON object in the ``detail`` of a fault; an empty one if it is not an object."""
    try:
        decoded = json.loads(detail or "{}")
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}
