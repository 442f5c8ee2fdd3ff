"""One process of a group of consumers: it is one member after the other, and this says how each of them ends.

A member consumes for some seconds. Then it leaves its group, crashes (stops without a word), or pauses for longer than
its session lasts and comes back as a zombie: it commits what it had read, in a generation that has ended, and goes on.
A fault that pauses the process makes it such a zombie, too, and one that kills it a crash (``processes``).
A process whose member has left or crashed begins again as another member. Now and then a member subscribes to other
topics.

A static process names the same instance id each time, so that it takes over the membership of the process before it.
It does not leave its group when it ends; an administrator may take it out. When another process takes over while it
pauses, it comes back fenced: it commits what it had read, is refused, and ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random  # noqa: TID251 - the type; every instance is seeded from the run's
from typing import Final, NamedTuple

from nemesis.workloads.group_members import GroupMember
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.operations import Pace

LEAVE, CRASH, PAUSE = "leave", "crash", "pause"
REMOVE, TAKEN_OVER = "remove", "taken-over"
RESUBSCRIBES: Final = 0.3
"""Of the times of consuming: the share in which the member subscribes to other topics."""
ENDS: Final = (LEAVE, CRASH, PAUSE, PAUSE)
"""How a dynamic member's time of consuming ends."""
STATIC_ENDS: Final = (LEAVE, REMOVE, CRASH, PAUSE, TAKEN_OVER)
"""How a static member's time of consuming ends."""
AWAY_S: Final = (0.2, 2.0)
"""How long a process waits before it begins as another member."""
PAUSED_SESSIONS: Final = (0.6, 2.5)
"""How long a pause lasts, in session time-outs: most members have lost their membership when they come back."""


class ProcessSettings(NamedTuple):
    """What all processes of a workload have in common."""

    member_interval_ms: int
    consuming_s: tuple[float, float]
    """How long a member consumes: at least and at most."""
    session_s: float
    topics: tuple[str, ...]
    """To which members subscribe at first; later to some of them."""
    permits: Callable[[str, int], bool]


class Ending(NamedTuple):
    """What happens to a member next, drawn before it begins."""

    kind: str
    after_s: float
    pause_s: float
    away_s: float
    topics: tuple[str, ...] | None
    """To which the member subscribes in the middle of its time; None: to those of before."""


class Incarnation(NamedTuple):
    """A client and the member that it is."""

    client: KafkaClient
    member: GroupMember


class GroupProcess:
    """See the module. ``new_incarnation`` makes a client and its member."""

    def __init__(
        self,
        name: str,
        settings: ProcessSettings,
        *,
        is_static: bool,
        new_incarnation: Callable[[], Incarnation],
        rng: Random,
    ) -> None:
        self._name = name
        self._settings = settings
        self._ends = STATIC_ENDS if is_static else ENDS
        self._new_incarnation = new_incarnation
        self._rng = rng
        self._pace = Pace(settings.member_interval_ms, rng)
        self._steps = count(1)
        self._sleeping: Incarnation | None = None
        """The process that was taken over while it paused."""

    async def run(self) -> None:
        """Be one member after the other, until cancelled."""
        while True:
            current = self._new_incarnation()
            is_taken_over = False
            try:
                ending = await self._consume(current.member)
                if ending.kind == TAKEN_OVER and self._sleeping is None:
                    self._sleeping, is_taken_over = current, True
                elif self._permits():
                    await self._end(current.member, ending)
            finally:
                if not is_taken_over:
                    current.client.close()
                    self._forget_sleeping()
            await asyncio.sleep(ending.away_s)

    async def _consume(self, member: GroupMember) -> Ending:
        """Consume, and pause and come back, until the member ends; return how."""
        while True:
            ending = self._draw_ending()
            await self._take_steps(member, ending.after_s / 2)
            if ending.topics is not None and self._permits():
                member.subscribe(ending.topics)
            await self._take_steps(member, ending.after_s / 2)
            if member.coordinator.is_fenced:
                return ending._replace(kind=CRASH)
            if ending.kind != PAUSE:
                return ending
            await asyncio.sleep(ending.pause_s)
            if self._permits():
                await member.commit_late()

    async def _take_steps(self, member: GroupMember, duration_s: float) -> None:
        end = asyncio.get_running_loop().time() + duration_s
        while asyncio.get_running_loop().time() < end and not member.coordinator.is_fenced:
            waits_since = asyncio.get_running_loop().time()
            await self._pace.wait()
            has_slept = asyncio.get_running_loop().time() - waits_since > self._settings.session_s
            if not self._permits():
                continue
            if has_slept:
                await member.commit_late()
            await member.step()
            if self._sleeping is not None and member.coordinator.is_assigned:
                await self._wake()

    async def _wake(self) -> None:
        """Let the process that was taken over come back: it does not know of it."""
        if self._sleeping is not None and self._permits():
            await self._sleeping.member.commit_late()
            self._sleeping.member.end()
        self._forget_sleeping()

    def _forget_sleeping(self) -> None:
        if self._sleeping is not None:
            self._sleeping.client.close()
        self._sleeping = None

    @staticmethod
    async def _end(member: GroupMember, ending: Ending) -> None:
        if member.coordinator.is_fenced:
            member.end()
        elif ending.kind in (LEAVE, REMOVE):
            await member.leave()
            if ending.kind == REMOVE:
                await member.remove_instance()

    def _permits(self) -> bool:
        return self._settings.permits(self._name, next(self._steps))

    def _draw_ending(self) -> Ending:
        settings = self._settings
        return Ending(
            self._rng.choice(self._ends),
            after_s=self._rng.uniform(*settings.consuming_s),
            pause_s=settings.session_s * self._rng.uniform(*PAUSED_SESSIONS),
            away_s=self._rng.uniform(*AWAY_S),
            topics=self._draw_topics(),
        )

    def _draw_topics(self) -> tuple[str, ...] | None:
        topics = self._settings.topics
        chosen = set(self._rng.sample(topics, self._rng.randint(1, len(topics))))
        if self._rng.random() >= RESUBSCRIBES:
            return None
        return tuple(topic for topic in topics if topic in chosen)
