"""Building findings: the one way all checks of this package do it."""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import proof


def finding(
    name: str,
    key: str,
    sentence: str,
    *rows: int | None,
    verdict: Verdict = Verdict.INVALID,
    steps: Iterable[str] = (),
) -> Finding:
    """Return a finding of property ``name`` that the events in these rows prove; unset rows are left out.

    ``steps`` spell the contradiction out, where the check knows more of it than the events say.
    """
    return Finding(
        property=name,
        verdict=verdict,
        key=key,
        sentence=sentence,
        steps=tuple(steps),
        events=tuple(proof(row) for row in rows if row is not None),
    )


def tp_name(topic: str | None, partition: int | None) -> str:
    """Return how a partition is written everywhere: ``orders-0``."""
    return f"{topic}-{partition}"
