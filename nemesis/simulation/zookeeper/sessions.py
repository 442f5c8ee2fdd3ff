"""The leader's view of the sessions: when each ends unless its client is heard of, and which member serves it.

Source: ``SessionTrackerImpl`` and ``LeaderSessionTracker`` of ZooKeeper 3.9. A new leader gives every session its full
time-out again, and lets the first member that speaks for a session have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nemesis.simulation.zookeeper.messages import Code


@dataclass(slots=True)
class _Session:
    timeout_s: float
    deadline: float
    owner: int | None


class SessionTracker:
    """Times are the loop's, in seconds; owners are members."""

    def __init__(self, timeouts_ms: Mapping[int, int], now: float) -> None:
        self._sessions: dict[int, _Session] = {}
        for session, timeout_ms in timeouts_ms.items():
            self.open(session, timeout_ms, None, now)

    def open(self, session: int, timeout_ms: int, owner: int | None, now: float) -> None:
        timeout_s = timeout_ms / 1000
        self._sessions[session] = _Session(timeout_s, now + timeout_s, owner)

    def close(self, session: int) -> bool:
        """Forget the session; return whether it was open."""
        return self._sessions.pop(session, None) is not None

    def touch(self, session: int, now: float) -> None:
        """Its client was heard of."""
        if (entry := self._sessions.get(session)) is not None:
            entry.deadline = now + entry.timeout_s

    def move(self, session: int, owner: int, now: float) -> bool:
        """Its client is at this member now; return whether the session is open."""
        if (entry := self._sessions.get(session)) is None:
            return False
        entry.owner = owner
        entry.deadline = now + entry.timeout_s
        return True

    def refusal(self, session: int, owner: int) -> Code:
        """Why a write of the session, coming from this member, is refused; OK if it is not."""
        if (entry := self._sessions.get(session)) is None:
            return Code.SESSION_EXPIRED
        if entry.owner is None:
            entry.owner = owner
        return Code.OK if entry.owner == owner else Code.SESSION_MOVED

    def overdue(self, now: float) -> list[int]:
        """Return the sessions whose time is over."""
        return [session for session, entry in self._sessions.items() if entry.deadline <= now]
