"""Following a leader: log what it proposes, apply what it commits, hand it what the clients want.

The member serves clients from the first commit on, which says that a quorum has the leader's history. A leader that is
not heard of for ``sync_limit`` ticks is left.
"""

from __future__ import annotations

import asyncio
from typing import Any

from nemesis.simulation.zookeeper.channel import Channel
from nemesis.simulation.zookeeper.member import Member
from nemesis.simulation.zookeeper.messages import (
    Ack,
    Alive,
    Commit,
    Forward,
    Heartbeat,
    Proposal,
    Revalidate,
    Revalidated,
    Submission,
)


class Following:
    """``channel`` is the leader's, who has just brought our log up to its own."""

    def __init__(self, member: Member, channel: Channel) -> None:
        self.is_serving = False
        self._member = member
        self._channel = channel
        self._numbers: dict[int, int] = {}
        self._touched: dict[int, None] = {}
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._channel.receive, self._channel.lost = self._receive, self._lost
        self._heard_at = self._member.loop.time()
        self._channel.send(Ack(self._member.disk.position))
        self._watch_leader()

    def end(self) -> None:
        assert self._timer is not None
        self._timer.cancel()
        self._channel.close()

    def submit(self, number: int, session: int, cxid: int, body: Submission) -> None:
        self._channel.send(Forward(number, session, cxid, body))

    def revalidate(self, number: int, session: int) -> None:
        self._channel.send(Revalidate(number, session))

    def touch(self, session: int) -> None:
        self._touched[session] = None

    def _receive(self, _channel: Channel, message: Any) -> None:
        member = self._member
        self._heard_at = member.loop.time()
        match message:
            case Heartbeat():
                self._channel.send(Alive(tuple(self._touched)))
                self._touched.clear()
            case Proposal(transaction, origin, number):
                member.disk.entries.append(transaction)
                if origin == member.number:
                    self._numbers[transaction.zxid] = number
                self._channel.send(Ack(transaction.zxid))
            case Commit(position):
                member.commit(position, self._numbers)
                self.is_serving = True
            case Revalidated(number, is_alive):
                member.service.revalidated(number, is_alive=is_alive)

    def _lost(self, _channel: Channel) -> None:
        self._member.look()

    def _watch_leader(self) -> None:
        settings, loop = self._member.settings, self._member.loop
        gone_at = self._heard_at + settings.sync_limit * settings.tick_s
        if loop.time() >= gone_at:
            self._member.look()
        else:
            self._timer = loop.call_at(gone_at, self._watch_leader)
