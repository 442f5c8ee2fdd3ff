"""Which brokers belong to a cluster: those that it began with, those that have joined, without those that have left.

Names are numbered from 1 and never given again, so that whatever the record says of a name is about one broker.
"""

from __future__ import annotations

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.support.node_names import node_names

ROLE = "broker"


class Membership:
    """The brokers of one cluster by name."""

    def __init__(self, count: int, *, limit: int) -> None:
        """``limit``: how many there can ever be. Raises ``UsageError`` when the count is not possible."""
        self.ever = node_names(ROLE, count, limit=limit)
        """All, in order; those that have left are there, too."""
        self._limit = limit
        self._retired: set[str] = set()

    @property
    def present(self) -> list[str]:
        """Those that belong to it now."""
        return [broker for broker in self.ever if broker not in self._retired]

    @property
    def next(self) -> str | None:
        """The name of the next that may join; None when there can be no more."""
        number = len(self.ever) + 1
        return f"{ROLE}-{number}" if number <= self._limit else None

    def admit(self, broker: str) -> None:
        """Let the next one belong to it; raises ``RuntimeFailure`` for any other."""
        if broker != self.next:
            raise RuntimeFailure(f"{broker} cannot join: the next broker is {self.next}")
        self.ever.append(broker)

    def retire(self, broker: str, *, is_alive: bool) -> None:
        """Let a dead one belong to it no more; raises ``RuntimeFailure`` for one that is alive or no member."""
        if is_alive:
            raise RuntimeFailure(f"{broker} cannot be retired: it is running")
        if broker not in self.present:
            raise RuntimeFailure(f"{broker} cannot be retired: it is no member")
        self._retired.add(broker)
