"""Looking for a leader: wait a little, ask the others, become the leader or wait again.

Most of the time somebody else is faster, or a leader is there already and finds this member: it leaves this role then.
Two rounds of questions: whether a majority would have us (nobody is bound), then for their promise of a new epoch.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nemesis.simulation.zookeeper.channel import Channel, ask
from nemesis.simulation.zookeeper.leading import Leading
from nemesis.simulation.zookeeper.messages import (
    Canvass,
    Message,
    NewEpoch,
    Opinion,
    Promise,
    Submission,
)

if TYPE_CHECKING:
    from nemesis.simulation.zookeeper.member import Member


NO_CLIENTS = "a member without a leader has no clients"


@dataclass(frozen=True, slots=True)
class Answer:
    """A peer's answer, on a channel that is still open."""

    peer: int
    channel: Channel
    message: Opinion | Promise

    @property
    def is_yes(self) -> bool:
        message = self.message
        return message.is_yes if isinstance(message, Opinion) else message.is_given


class Looking:
    """Serves nobody."""

    is_serving = False

    def __init__(self, member: Member) -> None:
        self._member = member
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        name = f"zookeeper-{self._member.number}-election"
        self._task = asyncio.get_running_loop().create_task(self._look(), name=name)

    def end(self) -> None:
        assert self._task is not None
        self._task.cancel()

    def submit(self, number: int, session: int, cxid: int, body: Submission) -> None:  # noqa: ARG002
        raise AssertionError(NO_CLIENTS)

    def revalidate(self, number: int, session: int) -> None:  # noqa: ARG002
        raise AssertionError(NO_CLIENTS)

    def touch(self, session: int) -> None:  # noqa: ARG002
        raise AssertionError(NO_CLIENTS)

    async def _look(self) -> None:
        member = self._member
        if member.majority == 1:  # a standalone server, whose zxids know no epochs
            member.become(Leading(member, 0, []))
            return
        while True:
            await asyncio.sleep(member.rng.uniform(*member.settings.election_delay_s))
            poll = _Poll(member)
            try:
                epoch = await self._campaign(poll)
                if epoch is not None:
                    member.become(Leading(member, epoch, poll.keep()))
                    return
            finally:
                poll.close()

    async def _campaign(self, poll: _Poll) -> int | None:
        """Return the epoch in which a majority has promised to follow us, None when it has not."""
        disk = self._member.disk
        if not await poll.ask(Canvass(disk.position)):
            return None
        epoch = max(disk.accepted_epoch, *poll.accepted_epochs) + 1
        disk.accepted_epoch = epoch
        return epoch if await poll.ask(NewEpoch(epoch, disk.position)) else None


class _Poll:
    """Questions to every peer, until enough have said yes or all have spoken."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._answers: dict[int, Answer] = {}
        self._channels: dict[int, Channel] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def accepted_epochs(self) -> list[int]:
        return [answer.message.accepted_epoch for answer in self._answers.values()]

    async def ask(self, question: Message) -> bool:
        """Ask everybody (in the first round) or all who answered before; return whether a majority says yes."""
        member = self._member
        asked = list(self._answers) or member.peers
        answers: dict[int, Answer] = {}  # who answers after the round is over is left out
        self._answers = answers
        left = len(asked)
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def ask_one(peer: int) -> None:
            nonlocal left
            with suppress(OSError, TimeoutError):
                answers[peer] = await self._ask_one(peer, question)
            left -= 1
            yes = 1 + sum(answer.is_yes for answer in answers.values())
            if not decided.done() and (yes >= member.majority or left == 0):
                decided.set_result(yes >= member.majority)

        loop = asyncio.get_running_loop()
        self._tasks += [
            loop.create_task(ask_one(peer), name=f"zookeeper-{member.number}-asks-{peer}")
            for peer in asked
        ]
        return await decided

    def keep(self) -> list[Answer]:
        """Return those who said yes; their channels are the caller's from now on."""
        kept = [answer for answer in self._answers.values() if answer.is_yes]
        for answer in kept:
            del self._channels[answer.peer]
        return kept

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for channel in self._channels.values():
            channel.close()

    async def _ask_one(self, peer: int, question: Message) -> Answer:
        member = self._member
        if peer not in self._channels:
            self._channels[peer] = await member.dial(peer)
        channel = self._channels[peer]
        async with asyncio.timeout(member.settings.tick_s):
            message = await ask(channel, question)
        if not isinstance(message, Opinion | Promise):
            raise ConnectionAbortedError("a peer that does not vote")
        return Answer(peer, channel, message)
