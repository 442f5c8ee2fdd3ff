"""What the nodes of a cluster are called: ``broker-1`` and so on, numbered from 1."""

from __future__ import annotations

from nemesis.support.errors import UsageError


def node_names(role: str, count: int, *, limit: int) -> list[str]:
    """Return the names of so many nodes; raises ``UsageError`` when the count is not positive or over the limit."""
    if not 1 <= count <= limit:
        raise UsageError(f"{count} {role}s are not possible: allowed are 1 to {limit}")
    return [f"{role}-{number}" for number in range(1, count + 1)]
