"""Writes that only the present controller can do.

Every write of a controller is a multi that first checks the version of ``/controller_epoch`` which its own election
left. When that check fails, somebody else is the controller: ``ControllerMovedError``.

A write whose reply was lost is asked again and may then meet itself. It is recognised by what the znode holds, and
counts as done. Source: the ``expectedControllerEpochZkVersion`` of kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nemesis.reference.ports import Check, Create, Delete, SetData, ZnodeStat, ZooKeeperOp
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import (
    ConnectionLossError,
    ControllerMovedError,
    MultiError,
    NoNodeError,
    OperationFailedError,
    ZooKeeperError,
)
from nemesis.reference.zk.pipelining import pipelined_in_batches
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession


@dataclass(frozen=True, slots=True)
class ControllerFence:
    """A controller's term: its epoch and the version that ``/controller_epoch`` has during it."""

    controller_epoch: int
    zk_version: int


Write = Create | SetData | Delete
OPERATION_NAMES = {Create: "create", SetData: "setData", Delete: "delete"}
"""As ZooKeeper's transaction log names them in a history."""
WriteOutcome = ZnodeStat | None | OperationFailedError
"""What a write left, which is None for a deletion, or why it was refused."""


class FencedWrites:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, *, tracer: Tracer) -> None:
        self._session = session
        self._tracer = tracer

    def fenced(self, ops: Sequence[ZooKeeperOp], fence: ControllerFence) -> list[ZooKeeperOp]:
        """Return the multi that does ``ops`` only while the fence's controller epoch is the current one."""
        return [Check(zk_data.CONTROLLER_EPOCH, fence.zk_version), *ops]

    async def write(self, op: Write, fence: ControllerFence) -> ZnodeStat | None:
        """Do one controller write; returns what it left, which may be one's own earlier attempt's."""
        [outcome] = await self._write_together([op], fence)
        if isinstance(outcome, ZooKeeperError):
            raise outcome
        return outcome

    async def write_all(self, ops: Sequence[Write], fence: ControllerFence) -> list[WriteOutcome]:
        """Do many, none of which depends on another; returns what each left, or why it was refused.

        Many go several to a multi; when one is refused, the others of its multi are done by themselves.
        Raises ``ControllerMovedError``.
        """
        return await pipelined_in_batches(ops, lambda batch: self._write_together(batch, fence))

    async def _write_together(
        self, ops: Sequence[Write], fence: ControllerFence, *, lost: bool = False
    ) -> list[WriteOutcome]:
        """All of them or, when one is refused, each by itself. ``lost``: an earlier attempt's reply did not come."""

        async def attempt() -> list[ZnodeStat | None]:
            nonlocal lost
            try:
                return await self._attempt(ops, fence)
            except ConnectionLossError:
                lost = True
                raise

        try:
            return list(await self._session.retry_request_until_connected(attempt))
        except MultiError as error:
            if len(ops) == 1:
                return [await self._refused(ops[0], fence, error, lost=lost)]
        return [
            outcome for op in ops for outcome in await self._write_together([op], fence, lost=lost)
        ]

    async def _attempt(
        self, ops: Sequence[Write], fence: ControllerFence
    ) -> list[ZnodeStat | None]:
        """One multi, traced. Raises ``MultiError`` when one of them is refused, ``ControllerMovedError``."""
        for op in ops:
            self._tracer.event(
                Kind.ZNODE_ATTEMPT,
                path=op.path,
                controller_epoch=fence.controller_epoch,
                zk_op=OPERATION_NAMES[type(op)],
            )
        multi = self.fenced(ops, fence)
        try:
            stats = (await self._session.writes.multi(multi))[-len(ops) :]
        except ZooKeeperError as error:
            for op in ops:
                self._trace_outcome(op, fence, error.code)
            if isinstance(error, MultiError) and isinstance(multi[error.index], Check):
                raise ControllerMovedError(
                    f"{ops[0].path}: controller epoch {fence.controller_epoch} is over"
                ) from error
            raise
        for op, stat in zip(ops, stats, strict=True):
            self._trace_outcome(op, fence, "NONE", stat)
        return stats

    async def _refused(
        self, op: Write, fence: ControllerFence, error: MultiError, *, lost: bool
    ) -> WriteOutcome:
        """The refusal, unless it is of one's own making: an attempt whose reply was lost had done it already."""
        if lost and (stat := await self._applied_before(op)) is not None:
            self._trace_outcome(op, fence, "NONE", stat)
            return stat
        return error.error

    async def _applied_before(self, op: Write) -> ZnodeStat | None:
        """Return the znode's stat when it holds exactly what an attempt with a lost reply would have left."""
        if isinstance(op, Delete):
            return None
        try:
            data, stat = await self._session.get(op.path)
        except NoNodeError:
            return None
        version = 0 if isinstance(op, Create) else op.version + 1
        return stat if data == op.data and stat.version == version else None

    def _trace_outcome(
        self, op: ZooKeeperOp, fence: ControllerFence, error: str, stat: ZnodeStat | None = None
    ) -> None:
        self._tracer.event(
            Kind.ZNODE_OUTCOME,
            path=op.path,
            controller_epoch=fence.controller_epoch,
            error=error,
            zxid=None if stat is None else stat.mzxid,
            zk_version=None if stat is None else stat.version,
        )
