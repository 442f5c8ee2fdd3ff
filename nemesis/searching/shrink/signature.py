"""When two findings are the same: the same property, about the same key, proved by the same kinds of events.

A property can be broken in several ways (a stale request was accepted, a stale write was committed); the kinds of the
events that prove it tell them apart, whatever their times, offsets and epochs. A key that counts something ("controller
epoch 5") is taken without its number: a run with fewer elections gets to the same place at a smaller one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nemesis.checkers.framework.model import Finding, Outcome
from nemesis.support.errors import UsageError

_NEVER: Final = 2**63
_COUNTED: Final = re.compile(r"(.* epoch) \d+")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a finding has in common with those that count as the same."""

    property: str
    key: str
    kinds: frozenset[str]
    """Of the events that prove it."""

    @classmethod
    def of(cls, finding: Finding) -> Signature:
        counted = _COUNTED.fullmatch(finding.key)
        return cls(
            property=finding.property,
            key=finding.key if counted is None else counted[1],
            kinds=frozenset(str(event.get("kind")) for event in finding.events),
        )

    def find(self, outcome: Outcome) -> Finding | None:
        """Return the first finding of this signature, if there is one."""
        same = (finding for finding in outcome.broken() if Signature.of(finding) == self)
        return next(same, None)


def choose(outcome: Outcome, name: str | None = None) -> Finding:
    """Return the finding to shrink: the earliest one of the property ``name``, else of the first broken property.

    Properties stand in the order from the controller to the clients, so the first is nearest to the cause. Raises
    ``UsageError`` when there is none.
    """
    broken = outcome.broken()
    names = list(dict.fromkeys(finding.property for finding in broken))
    if not broken:
        raise UsageError(f"nothing to shrink: the run is {outcome.verdict.value}")
    if name is not None and name not in names:
        raise UsageError(f"the run did not break {name!r}: it broke {', '.join(names)}")
    wanted = names[0] if name is None else name
    return min((finding for finding in broken if finding.property == wanted), key=_proved)


def _proved(finding: Finding) -> tuple[int, int]:
    """When it was proved; what ZooKeeper's log alone proves has an order but no time, and comes last."""
    time = max((event.get("time", -1) for event in finding.events), default=-1)
    zxid = max((event.get("zxid", 0) for event in finding.events), default=0)
    return (time, zxid) if time >= 0 else (_NEVER, zxid)
