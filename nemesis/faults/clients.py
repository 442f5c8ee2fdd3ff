"""``kill-client`` and ``pause-client``: client processes end without a word, or sleep and come back.

A killed consumer sends no LeaveGroup: its group learns of its end when its session does. A consumer that is paused for
longer than its session comes back as a zombie: it believes that it still owns its partitions, and what it had decided
but not sent goes out.

Effects and heals are measured at the process: whether its task lives, how many connections it has open, how many steps
its code has taken and how many requests it has sent.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar, Final, Self

from nemesis.faults import client_selectors
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    Strike,
    selector_field,
)
from nemesis.interfaces.clients import ClientProcesses, ClientState

OBSERVED_S: Final = 0.2
"""How long a paused process is observed, to see that it does nothing."""


class ClientFault(Fault, frozen=True, kw_only=True):
    """The base of the faults of client processes."""

    needs: ClassVar[frozenset[type]] = frozenset({ClientProcesses})

    selector: Selector = selector_field(client_selectors.CLIENT)

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        del nodes
        client_selectors.parse(self.selector)

    def check_clients(self, clients: ClientProcesses) -> None:
        """Raise ``UsageError`` when the selector names what the workload does not have."""
        client_selectors.check(self.selector, clients)


class KillClient(ClientFault, frozen=True, kw_only=True):
    """Kill a client process, and start it again after ``duration_s``."""

    name: ClassVar[str] = "kill-client"
    summary: ClassVar[str] = (
        "kills a client process (no LeaveGroup); it starts again after `duration_s`"
    )
    effect: ClassVar[str] = "its task has ended and its connections are closed"
    heal: ClassVar[str] = "a new process of the name lives"

    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        return KillClientStrike(
            context.clients, client_selectors.resolve(self.selector, context, rng)
        )


class PauseClient(ClientFault, frozen=True, kw_only=True):
    """Pause a client process for ``duration_s``."""

    name: ClassVar[str] = "pause-client"
    summary: ClassVar[str] = (
        "stops a client process; after `duration_s` it goes on with what it believed before"
    )
    effect: ClassVar[str] = f"its code takes no step and sends nothing for {OBSERVED_S:g} s"
    heal: ClassVar[str] = "it sent nothing during the pause, and none of its steps is held"

    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        return PauseClientStrike(
            context.clients, client_selectors.resolve(self.selector, context, rng)
        )


class KillClientStrike:
    """One kill that has its victim."""

    def __init__(self, clients: ClientProcesses, victim: str) -> None:
        self._clients = clients
        self._victim = victim
        self.victims = [victim]
        self.intent: dict[str, Any] = {"signal": "SIGKILL"}

    async def apply(self) -> Measured:
        before = self._clients.state(self._victim)
        await self._clients.kill(self._victim)
        after = self._clients.state(self._victim)
        return Measured(
            is_effective=before.is_alive and not after.is_alive and after.connections == 0,
            detail={
                "dead": not after.is_alive,
                "connections": after.connections,
                "connections_before": before.connections,
            },
        )

    async def undo(self) -> None:
        if not self._clients.state(self._victim).is_alive:
            self._clients.start(self._victim)

    async def verify(self) -> Measured:
        alive = self._clients.state(self._victim).is_alive
        return Measured(is_effective=alive, detail={"alive": alive})


class PauseClientStrike:
    """One pause that has its victim."""

    def __init__(self, clients: ClientProcesses, victim: str) -> None:
        self._clients = clients
        self._victim = victim
        self._stopped: ClientState | None = None
        """The process when it was stopped."""
        self._resumed: ClientState | None = None
        self.victims = [victim]
        self.intent: dict[str, Any] = {"signal": "SIGSTOP"}

    async def apply(self) -> Measured:
        self._clients.pause(self._victim)
        self._stopped = self._clients.state(self._victim)
        await asyncio.sleep(OBSERVED_S)
        now = self._clients.state(self._victim)
        return Measured(
            is_effective=now.is_alive and now.is_paused and _is_same(self._stopped, now),
            detail={"paused": now.is_paused, **_done(self._stopped, now)},
        )

    async def undo(self) -> None:
        self._resumed = self._clients.state(self._victim)
        self._clients.resume(self._victim)

    async def verify(self) -> Measured:
        assert self._stopped is not None
        assert self._resumed is not None
        await asyncio.sleep(OBSERVED_S)
        now = self._clients.state(self._victim)
        return Measured(
            is_effective=_is_same(self._stopped, self._resumed) and not now.is_paused,
            detail={
                "paused": now.is_paused,
                "during": _done(self._stopped, self._resumed),
                "since": _done(self._resumed, now),
            },
        )


def _is_same(earlier: ClientState, later: ClientState) -> bool:
    """Whether the process has taken no step and sent nothing between the two."""
    return (earlier.steps, earlier.frames) == (later.steps, later.frames)


def _done(earlier: ClientState, later: ClientState) -> dict[str, int]:
    """Return what the process has done between the two."""
    return {"steps": later.steps - earlier.steps, "sent": later.frames - earlier.frames}
