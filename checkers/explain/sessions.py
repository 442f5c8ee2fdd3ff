"""The brokers that own the ZooKeeper sessions of a finding: a write in a session is a write of its broker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_SESSION: Final = re.compile(r"\b([Ss])ession (0x[0-9a-f]+)\b")


def with_brokers(steps: Iterable[str], owners: Mapping[int, int]) -> tuple[str, ...]:
    """Return the steps with ``broker 2 (session 0xa)`` instead of ``session 0xa``, where its broker is known."""

    def named(match: re.Match[str]) -> str:
        owner = owners.get(int(match[2], 16))
        if owner is None:
            return match[0]
        return f"{'Broker' if match[1] == 'S' else 'broker'} {owner} (session {match[2]})"

    return tuple(_SESSION.sub(named, step) for step in steps)


def names_session(steps: Iterable[str]) -> bool:
    """Return whether a step names a session."""
    return any(_SESSION.search(step) for step in steps)
