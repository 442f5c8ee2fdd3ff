"""A leader writes the ISR of its partition itself, as before AlterPartition (``inter.broker.protocol.version=2.6``).

No fence of a controller epoch guards the write, and none is needed: it compares the znode's version, and every change
of leader has raised that. The state carries the epoch of the controller that made the leader one, which may be over.
Source: kafka.utils.ReplicationUtils.updateLeaderAndIsr.
"""

from __future__ import annotations

from dataclasses import replace

from nemesis.reference.model import LeaderAndIsr, TopicPartition
from nemesis.reference.ports import ZnodeStat
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import BadVersionError, NoNodeError, ZooKeeperError
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession


class ReplicationUtils:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, *, tracer: Tracer) -> None:
        self._session = session
        self._tracer = tracer

    async def update_leader_and_isr(
        self, topic_partition: TopicPartition, wanted: LeaderAndIsr, controller_epoch: int
    ) -> LeaderAndIsr | None:
        """Compare-and-set the state on its ``partition_epoch``; return the committed one, which has the next.

        None: the state is not, or no longer, the one that it was to replace. Asked again after a lost reply, in the
        next session too: the write rests on nothing that a session holds. Raises ``ClientClosedError`` when the broker
        stops, and ``OperationFailedError`` for what ZooKeeper refuses else.
        """
        path = zk_data.state_path(topic_partition)
        committed = replace(wanted, partition_epoch=wanted.partition_epoch + 1)
        data = zk_data.encode_state(LeaderIsrAndControllerEpoch(committed, controller_epoch))

        async def write() -> bool:
            try:
                await self._session.retry_request_until_connected(
                    lambda: self._attempt(path, data, wanted.partition_epoch, controller_epoch)
                )
            except BadVersionError:
                return await self._is_there(path, data, committed.partition_epoch)
            except NoNodeError:
                return False
            return True

        return committed if await self._session.retry_across_sessions(write) else None

    async def _attempt(self, path: str, data: bytes, version: int, controller_epoch: int) -> None:
        self._tracer.event(
            Kind.ZNODE_ATTEMPT, path=path, controller_epoch=controller_epoch, zk_op="setData"
        )
        try:
            stat = await self._session.writes.set_data(path, data, version)
        except ZooKeeperError as error:
            self._trace_outcome(path, controller_epoch, error.code)
            raise
        self._trace_outcome(path, controller_epoch, "NONE", stat)

    async def _is_there(self, path: str, data: bytes, version: int) -> bool:
        """Whether the conflict is with an earlier attempt of ours: nobody else writes this state in this epoch."""
        try:
            stored, stat = await self._session.get(path)
        except NoNodeError:
            return False
        return stored == data and stat.version == version

    def _trace_outcome(
        self, path: str, controller_epoch: int, error: str, stat: ZnodeStat | None = None
    ) -> None:
        self._tracer.event(
            Kind.ZNODE_OUTCOME,
            path=path,
            controller_epoch=controller_epoch,
            error=error,
            zxid=None if stat is None else stat.mzxid,
            zk_version=None if stat is None else stat.version,
        )
