"""Looking for a leader: wait a little, ask the others, become the leader or wait again.

Most of the time somebody else is faster, or a leader is there already and finds this member: it leaves this role then.
Two rounds of questions: whether a majority would have us (nobody is bound), then for their promise of a new epoch.
"""

from __future__ import annotations

import asyncio

from nemesis.simulation.zookeeper.leading import Leading
from nemesis.simulation.zookeeper.member import Member
from nemesis.simulation.zookeeper.messages import Canvass, NewEpoch, Submission
from nemesis.simulation.zookeeper.poll import Poll

NO_CLIENTS = "a member without a leader has no clients"


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
            poll = Poll(member)
            try:
                epoch = await self._campaign(poll)
                if epoch is not None:
                    member.become(Leading(member, epoch, poll.take_supporters()))
                    return
            finally:
                poll.close()

    async def _campaign(self, poll: Poll) -> int | None:
        """Return the epoch in which a majority has promised to follow us, None when it has not."""
        disk = self._member.disk
        if not await poll.ask(Canvass(disk.position)):
            return None
        epoch = max(disk.accepted_epoch, *poll.accepted_epochs) + 1
        disk.accepted_epoch = epoch
        return epoch if await poll.ask(NewEpoch(epoch, disk.position)) else None
