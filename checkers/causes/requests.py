"""Whether a control request reached its broker: never sent, never answered, refused, or accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nemesis.checkers.causes.chain import UNTRACED_CONTROLLER, Chain, Link, expected
from nemesis.checkers.causes.view import View
from nemesis.checkers.explain.tell import tell
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.history.events import Event, Kind

LEADER_AND_ISR: Final = "LeaderAndIsr"
UPDATE_METADATA: Final = "UpdateMetadata"


@dataclass(frozen=True, slots=True)
class Requests:
    """The control requests of one API to one broker from a time on, and its answers."""

    api: str
    broker: int
    sent: list[Row]
    accepted: list[Row]
    refused: list[Row]

    @classmethod
    def since(cls, view: View, api: str, broker: int, since_ns: int) -> Requests:
        sent = view.events(Kind.CONTROL_REQUEST_SENT, api=api, peer=broker, since_ns=since_ns)
        handled = view.events(
            Kind.CONTROL_REQUEST_HANDLED,
            api=api,
            process=f"broker-{broker}",
            since_ns=sent[0][1].time if sent else view.until_ns,
        )
        return cls(
            api,
            broker,
            sent,
            [item for item in handled if succeeded(item[1])],
            [item for item in handled if not succeeded(item[1])],
        )

    def answers(self, view: View, topic: str | None, partition: int | None) -> Chain:
        """Return what the broker answered last for a partition to those that it accepted; empty if to none."""
        answered = view.of_process(
            self.broker,
            Kind.CONTROL_REQUEST_ANSWERED,
            since_ns=self.accepted[0][1].time,
            api=self.api,
            topic=topic,
            partition=partition,
        )
        return [Link(f"{view.ago(row[1])}, {tell(row[1])}", row) for row in answered[-1:]]

    def fate(self, view: View, subject: str) -> Chain | None:
        """Return why the broker cannot have got ``subject`` by such a request; None if it accepted one."""
        if self.accepted:
            return None
        if not self.sent and not view.traces_controller():
            return [UNTRACED_CONTROLLER]
        if not self.sent:
            return [
                Link(f"no controller sent broker {self.broker} any {self.api} after that"),
                expected(f"{_a(self.api)} with {subject} to broker {self.broker}"),
            ]
        item = self.sent[-1]
        event = item[1]
        count = len(self.sent)
        which = _a(self.api) if count == 1 else f"the last of {count:,} {self.api} requests"
        sent = f"{view.ago(event)}, controller {event.node} sent broker {self.broker} {which}"
        none = "it" if count == 1 else "any of them"
        if not self.refused:
            return [
                Link(f"{sent}; broker {self.broker} did not handle {none}", item),
                expected(f"the answer of broker {self.broker} to {self.api}"),
            ]
        refusal = self.refused[-1]
        return [
            Link(sent, item),
            Link(
                f"{view.ago(refusal[1])}, broker {self.broker} answered {refusal[1].error}, and did not accept "
                f"{none}",
                refusal,
            ),
            *self._other_epoch(view, refusal[1]),
            expected(f"{_a(self.api)} that broker {self.broker} accepts"),
        ]

    def _other_epoch(self, view: View, refusal: Event) -> Chain:
        """The broker epoch of a refused request, if it is not that of the registration."""
        registration = view.registration(self.broker)
        if registration is None or registration.epoch == refusal.broker_epoch:
            return []
        text = (
            f"the request named broker epoch {refusal.broker_epoch} of broker {self.broker}, which registered with "
            f"{registration.epoch} {view.ago(registration.created[1])}"
        )
        return [Link(text, registration.created, is_remark=True)]


def _a(api: str) -> str:
    return f"{'an' if api[0] in 'AEIOU' else 'a'} {api}"
