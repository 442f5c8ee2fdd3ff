"""A cause as it is put together: links, each a sentence and the event that it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from nemesis.checkers.explain.words import sentence
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.reason import Cause


class Link(NamedTuple):
    text: str
    row: Row | None = None
    is_remark: bool = False
    """Whether it explains the link before it, so that it stays behind it."""


Chain = list[Link]

UNNAMED: Final = "The recorded events do not show the cause."
NOT_TRACED: Final = "The history has no events of brokers, so it names no cause."


def expected(text: str) -> Link:
    """Return the link that ends a chain: what had to come next, and did not."""
    return Link(f"expected next: {text}")


def untraced(broker: int) -> Link:
    """Return the link of a broker that records no events."""
    return Link(f"broker {broker} records no events, so what it was sent and did is not known")


UNTRACED_CONTROLLER: Final = Link("the controller records no events, so what it did is not known")


def cause(links: Iterable[Link]) -> Cause:
    """Return the cause that these links spell out; one that says that it cannot be named if there are none."""
    chain = list(links) or [Link(UNNAMED)]
    rows = dict.fromkeys(link.row[0] for link in chain if link.row is not None)
    return Cause(tuple(sentence(link.text) for link in chain), tuple(rows))
