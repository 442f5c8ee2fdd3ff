"""Questions that a candidate asks every peer, until enough have said yes or all have answered."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from nemesis.simulation.zookeeper.channel import Channel, ask
from nemesis.simulation.zookeeper.member import Member
from nemesis.simulation.zookeeper.messages import Message, Opinion, Promise


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


class Poll:
    """See the module. One poll may ask several questions, one after the other."""

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

    def take_supporters(self) -> list[Answer]:
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
