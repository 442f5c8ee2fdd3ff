"""Leading: order the writes, have a majority log them, commit; keep the followers and the sessions.

The leader works on two trees. The member's own shows what is committed; another one is ahead by what has been proposed,
so that a write is judged after all the writes before it, committed or not.

A log position is committed when a majority has it and it is not older than the leader's own epoch: the first such
position stands for the whole history that the leader came with. From then on the member serves clients and accepts
writes. A leader that does not hear of a quorum for ``sync_limit`` ticks gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nemesis.history.zookeeper_log import EPOCH_BITS, Operation, Transaction, TransactionType
from nemesis.simulation.zookeeper.channel import Channel, ask, encode
from nemesis.simulation.zookeeper.member import Member
from nemesis.simulation.zookeeper.messages import (
    Ack,
    Alive,
    CloseSession,
    Code,
    Commit,
    Forward,
    Heartbeat,
    NewEpoch,
    OpenSession,
    Promise,
    Proposal,
    Revalidate,
    Revalidated,
    Submission,
    Sync,
    Write,
)
from nemesis.simulation.zookeeper.poll import Answer
from nemesis.simulation.zookeeper.sessions import SessionTracker
from nemesis.simulation.zookeeper.tree import Tree

EXPIRY_CXID = 0
"""Of a session that the leader closes by itself."""


@dataclass(slots=True, eq=False)
class _Follower:
    channel: Channel
    heard_at: float
    position: int = -1
    """How far its log is known to reach; -1 until it is synchronised."""


class Leading:
    """``electors`` have promised to follow in ``epoch``, on channels that are ours now."""

    def __init__(self, member: Member, epoch: int, electors: Sequence[Answer]) -> None:
        self._member = member
        self._epoch = epoch
        self._electors = electors
        self._begin_position = epoch << EPOCH_BITS
        self._committed = -1
        self._ahead: Tree | None = None
        self._sessions = SessionTracker({}, 0.0)
        self._followers: dict[int, _Follower] = {}
        self._recruits: dict[int, asyncio.Task[None]] = {}
        self._numbers: dict[int, int] = {}
        self._began_at = 0.0
        self._half_ticks = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_serving(self) -> bool:
        return self._ahead is not None

    def begin(self) -> None:
        member = self._member
        member.disk.current_epoch = self._epoch
        self._began_at = member.loop.time()
        for elector in self._electors:
            promise = elector.message
            assert isinstance(promise, Promise)
            self._synchronise(elector.peer, elector.channel, promise.epoch_ends)
        self._advance()
        self._beat()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._recruits.values():
            task.cancel()
        for follower in self._followers.values():
            follower.channel.close()

    # Writes

    def submit(self, number: int, session: int, cxid: int, body: Submission) -> None:
        self._propose(self._member.number, number, session, cxid, body)

    def revalidate(self, number: int, session: int) -> None:
        member = self._member
        is_alive = self._sessions.move(session, member.number, member.loop.time())
        member.service.revalidated(number, is_alive=is_alive)

    def touch(self, session: int) -> None:
        self._sessions.touch(session, self._member.loop.time())

    def _propose(self, origin: int, number: int, session: int, cxid: int, body: Submission) -> None:
        """Make a transaction of a request, also of one that is refused, and have it logged everywhere."""
        disk = self._member.disk
        zxid = disk.position + 1
        transaction = self._transaction(zxid, origin, session, cxid, body)
        disk.entries.append(transaction)
        if origin == self._member.number:
            self._numbers[zxid] = number
        if self._followers:
            frame = encode(Proposal(transaction, origin, number))
            for follower in self._followers.values():
                follower.channel.send_frame(frame)
        self._advance()

    def _transaction(
        self, zxid: int, origin: int, session: int, cxid: int, body: Submission
    ) -> Transaction:
        ahead, sessions = self._ahead, self._sessions
        assert ahead is not None, "a leader without a quorum accepts no writes"
        operations: tuple[Operation, ...] = ()
        timeout_ms, closed_paths = 0, None
        wall_ms = self._member.wall_clock()
        match body:
            case OpenSession(timeout_ms):
                kind = TransactionType.CREATE_SESSION
                sessions.open(session, timeout_ms, origin, self._member.loop.time())
            case CloseSession():
                kind = TransactionType.CLOSE_SESSION
                closed_paths = ahead.ephemerals(session)
                if not sessions.close(session):
                    kind, closed_paths = TransactionType.ERROR, None
                    operations = _refused(1, Code.SESSION_EXPIRED)
            case Write(ops, is_multi):
                refusal = sessions.refusal(session, origin)
                operations = (
                    _refused(len(ops), refusal)
                    if refusal
                    else ahead.attempt(session, ops, zxid, wall_ms)
                )
                kind = TransactionType.MULTI if is_multi else TransactionType(operations[0].type)
        transaction = Transaction(
            session=session,
            cxid=cxid,
            zxid=zxid,
            wall_ms=wall_ms,
            type=kind,
            checksum=0,
            operations=operations,
            timeout_ms=timeout_ms,
            closed_paths=closed_paths,
        )
        if not isinstance(body, Write):
            ahead.apply(transaction)
        return transaction

    def _advance(self) -> None:
        """Commit what a majority has logged."""
        member = self._member
        positions = [follower.position for follower in self._followers.values()]
        positions.append(member.disk.position)
        positions.sort(reverse=True)
        if len(positions) < member.majority:
            return
        position = positions[member.majority - 1]
        if position < self._begin_position or position <= self._committed:
            return
        self._committed = position
        frame = encode(Commit(position))
        for follower in self._followers.values():
            if follower.position >= self._begin_position:
                follower.channel.send_frame(frame)
        member.commit(position, self._numbers)
        if self._ahead is None:
            # Nothing was proposed before: the whole log is committed.
            self._ahead = member.tree.copy()
            self._sessions = SessionTracker(member.tree.sessions, member.loop.time())

    # Followers

    def _synchronise(self, peer: int, channel: Channel, epoch_ends: dict[int, int]) -> None:
        if not channel.is_open:
            return
        disk = self._member.disk
        keep_to = disk.common_zxid(epoch_ends)
        follower = _Follower(channel, self._member.loop.time())
        self._followers[peer] = follower
        channel.receive = lambda _, message: self._receive(peer, follower, message)
        channel.lost = lambda _: self._dismiss(peer)
        channel.send(Sync(self._epoch, keep_to, tuple(disk.after(keep_to))))

    def _receive(self, peer: int, follower: _Follower, message: Any) -> None:
        now = self._member.loop.time()
        follower.heard_at = now
        match message:
            case Ack(position):
                is_new = follower.position < 0
                follower.position = position
                before = self._committed
                self._advance()
                if is_new and before >= 0 and before == self._committed:
                    follower.channel.send(Commit(before))
            case Alive(touched):
                for session in touched:
                    self._sessions.touch(session, now)
            case Forward(number, session, cxid, body):
                self._propose(peer, number, session, cxid, body)
            case Revalidate(number, session):
                is_alive = self._sessions.move(session, peer, now)
                follower.channel.send(Revalidated(number, is_alive))

    def _dismiss(self, peer: int) -> None:
        self._followers.pop(peer).channel.close()

    def _recruit(self, peer: int) -> None:
        name = f"zookeeper-{self._member.number}-recruits-{peer}"
        task = self._member.loop.create_task(self._win(peer), name=name)
        self._recruits[peer] = task
        task.add_done_callback(lambda _: self._recruits.pop(peer, None))

    async def _win(self, peer: int) -> None:
        """Make a follower of a member that is none, if it can be reached."""
        member = self._member
        channel: Channel | None = None
        try:
            channel = await member.dial(peer)
            async with asyncio.timeout(member.settings.tick_s):
                answer = await ask(channel, NewEpoch(self._epoch, 0, is_elected=True))
            if not isinstance(answer, Promise):
                return
            if answer.is_given:
                self._synchronise(peer, channel, answer.epoch_ends)
                channel = None
            elif answer.accepted_epoch > self._epoch:
                member.look()  # it cannot follow us any more; an election finds an epoch above all
        except (OSError, TimeoutError):
            pass
        finally:
            if channel is not None:
                channel.close()

    # Time

    def _beat(self) -> None:
        """Twice a tick: is there a quorum still? Once a tick: whose session is over, who could follow again?"""
        member, settings = self._member, self._member.settings
        now = member.loop.time()
        silence_s = settings.sync_limit * settings.tick_s
        for peer, follower in list(self._followers.items()):
            if now - follower.heard_at > silence_s:
                self._dismiss(peer)
        synced = 1 + sum(follower.position >= 0 for follower in self._followers.values())
        patience_s = 0.0 if self.is_serving else settings.init_limit * settings.tick_s
        if synced < member.majority and now - self._began_at >= patience_s:
            member.look()
            return
        frame = encode(Heartbeat())
        for follower in self._followers.values():
            follower.channel.send_frame(frame)
        if self._half_ticks % 2 == 0:
            self._tick(now)
        self._half_ticks += 1
        self._timer = member.loop.call_later(settings.tick_s / 2, self._beat)

    def _tick(self, now: float) -> None:
        for session in self._sessions.overdue(now):
            self._propose(self._member.number, 0, session, EXPIRY_CXID, CloseSession())
        for peer in self._member.peers:
            if peer not in self._followers and peer not in self._recruits:
                self._recruit(peer)


def _refused(count: int, code: Code) -> tuple[Operation, ...]:
    filler = Operation(TransactionType.ERROR, error=Code.RUNTIME_INCONSISTENCY)
    return (Operation(TransactionType.ERROR, error=code), *[filler] * (count - 1))
