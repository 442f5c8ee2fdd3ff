"""What stands behind names: properties, planted bugs, and what shrinking has removed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup, escape

from nemesis.checkers import property_named
from nemesis.checkers.framework.model import Outcome
from nemesis.checkers.framework.property import Property

_ISSUE: Final = re.compile(r"KAFKA-\d+")
ISSUES: Final = "https://issues.apache.org/jira/browse/"
_PARTS: Final[Mapping[str, str]] = {
    "faults": "faults",
    "operations": "operations of clients",
    "seconds": "seconds",
    "deviations": "late turns",
}


def judged_properties(outcome: Outcome) -> list[Property]:
    """Return the properties that the outcome names, in its order, as far as they are registered."""
    known = (property_named(result.property) for result in outcome.results)
    return [decided for decided in known if decided is not None]


def with_issues(text: str) -> Markup:
    """Return a text in which numbers of Kafka's issues are links."""
    escaped = str(escape(text))
    return Markup(_ISSUE.sub(lambda match: _link(match[0]), escaped))  # noqa: S704


def _link(issue: str) -> str:
    return f'<a href="{ISSUES}{issue}">{issue}</a>'


def removed_by_shrinking(shrunk: Mapping[str, Any]) -> str:
    """Return what a shrunk run does without: ``7 of 8 faults, 190 of 200 operations of clients``."""
    before, after = shrunk.get("before", {}), shrunk.get("after", {})
    parts = [
        f"{before[name] - after[name]:,g} of {before[name]:,g} {words}"
        for name, words in _PARTS.items()
        if before.get(name, 0) > after.get(name, 0)
    ]
    return ", ".join(parts)
