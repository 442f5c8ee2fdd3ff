"""Writes that only the present controller can do.

Every write of a controller is a multi that first checks the version of ``/controller_epoch`` which its own election
left. When that check fails, somebody else is the controller: ``ControllerMovedError``.

A write whose reply was lost is asked again and may then meet itself. It is recognised by what the znode holds, and
counts as done. Source: the ``expectedControllerEpochZkVersion`` of kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference.ports import Check, Create, Delete, SetData, ZnodeStat, ZooKeeperOp
from reference.trace import Kind, Tracer
from reference.zk import zk_data
from reference.zk.errors import (
    ConnectionLossError,
    ControllerMovedError,
    MultiError,
    NoNodeError,
    ZooKeeperError,
)
from reference.zk.zookeeper_session import ZooKeeperSession


@dataclass(frozen=True, slots=True)
class ControllerFence:
    """A controller's term: its epoch and the version that ``/controller_epoch`` has during it."""

    controller_epoch: int
    zk_version: int


class FencedWrites:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, *, tracer: Tracer) -> None:
        self._session = session
        self._tracer = tracer

    def fenced(self, ops: Sequence[ZooKeeperOp], fence: ControllerFence) -> list[ZooKeeperOp]:
        """Return the multi that does ``ops`` only while the fence's controller epoch is the current one."""
        return [Check(zk_data.CONTROLLER_EPOCH, fence.zk_version), *ops]

    async def write(
        self, op: Create | SetData | Delete, fence: ControllerFence
    ) -> ZnodeStat | None:
        """Do one controller write; returns what it left, which may be one's own earlier attempt's."""
        ops = self.fenced([op], fence)
        unknown = False

        async def attempt() -> ZnodeStat | None:
            nonlocal unknown
            self._tracer.event(
                Kind.ZNODE_ATTEMPT,
                path=op.path,
                controller_epoch=fence.controller_epoch,
                detail=type(op).__name__,
            )
            try:
                results = await self._session.zookeeper.multi(ops)
            except ZooKeeperError as error:
                unknown = unknown or isinstance(error, ConnectionLossError)
                self._trace_outcome(op, fence, error.code)
                raise
            stat = results[-1]
            self._trace_outcome(op, fence, "NONE", stat)
            return stat

        try:
            return await self._session.retry_request_until_connected(attempt)
        except MultiError as error:
            if isinstance(ops[error.index], Check):
                raise ControllerMovedError(
                    f"{op.path}: controller epoch {fence.controller_epoch} is over"
                ) from error
            if unknown and (stat := await self._applied_before(op)) is not None:
                self._trace_outcome(op, fence, "NONE", stat)
                return stat
            raise error.error from error

    async def _applied_before(self, op: Create | SetData | Delete) -> ZnodeStat | None:
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
