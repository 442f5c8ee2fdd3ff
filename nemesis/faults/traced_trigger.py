"""Any traced event as the trigger of a fault: ``after: isr-join of orders-0`` in a plan file.

A trigger is ``KIND``, ``KIND of TOPIC-PARTITION``, ``KIND on broker-N``, or all three. ``KIND`` is a kind of event that
brokers trace (``nemesis.history.vocabulary``), or ``isr-join`` or ``isr-leave``: a leader has learnt that its ISR has
grown or shrunk. A fault with a trigger finds its victims before the event and
strikes within milliseconds of it; the selector ``tracer`` stands for the broker that traced the event.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary import brokers, controller, replication
from nemesis.history.vocabulary.declaring import declarations
from nemesis.registry import unknown
from nemesis.support.errors import UsageError

ISR_JOIN: Final = "isr-join"
ISR_LEAVE: Final = "isr-leave"
TRACER: Final = "tracer"
"""The selector of the broker that traced the event."""
TRACED: Final = tuple(
    dict.fromkeys(
        str(declared.kind)
        for declared in declarations()
        if declared.view.__module__ in (brokers.__name__, controller.__name__, replication.__name__)
    )
)
"""The kinds of events that brokers trace."""
KINDS: Final = (ISR_JOIN, ISR_LEAVE, *TRACED)
_FORM: Final = re.compile(r"(\S+)(?: of (\S+)-(\d+))?(?: on broker-(\d+))?")


@dataclass(frozen=True, slots=True)
class TracedTrigger:
    """An event of a kind, perhaps of one partition, perhaps traced by one broker."""

    kind: str
    partition: tuple[str, int] | None = None
    broker: int | None = None

    def matcher(self) -> Callable[[Event], bool]:
        """Return what recognises the event in a stream of events; it remembers ISRs, so use it for one wait."""
        if self.kind not in (ISR_JOIN, ISR_LEAVE):
            return lambda event: event.kind == self.kind and self._concerns(event)
        proposed: dict[tuple[str, str | None, int | None], int] = {}

        def is_change(event: Event) -> bool:
            if event.kind not in (Kind.ISR_CHANGE_PROPOSED, Kind.ISR_CHANGE_COMMITTED):
                return False
            key = (event.process, event.topic, event.partition)
            size = len(event.isr or ())
            if event.kind == Kind.ISR_CHANGE_PROPOSED:
                proposed[key] = size
                return False
            before = proposed.pop(key, size)
            has_changed = size > before if self.kind == ISR_JOIN else size < before
            return has_changed and self._concerns(event)

        return is_change

    def _concerns(self, event: Event) -> bool:
        if self.broker is not None and event.node != self.broker:
            return False
        return self.partition is None or self.partition == (event.topic, event.partition)


def parse(text: str) -> TracedTrigger:
    """Return the trigger that the text states; raises ``UsageError`` with one sentence."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(
            f"unknown trigger {text!r}: expected KIND, KIND of TOPIC-PARTITION or KIND on broker-N"
        )
    kind, topic, partition, broker = match.groups()
    if kind not in KINDS:
        raise UsageError(unknown("kind of trigger", kind, KINDS))
    return TracedTrigger(
        kind,
        None if topic is None else (topic, int(partition)),
        None if broker is None else int(broker),
    )
