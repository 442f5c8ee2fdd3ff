"""Everything that a broker does in ZooKeeper, in Kafka's terms.

Three ideas live here, each in one place:

* **Retry** (``retry_request_until_connected``): an operation whose connection broke is asked again once the same
  session is connected, for as long as the session lives, never in another one.
* **Fence** (``fenced``): every write of a controller is a multi that first checks the version of ``/controller_epoch``
  which its own election left. When that check fails, somebody else is the controller: ``ControllerMovedError``.
* **Watches** (``znode_watches``): a change handler is registered for a path, and a read of that path sets the watch.

A write whose reply was lost is asked again and may then meet itself. It is recognised by what the znode holds, and
counts as done. Source: kafka.zk.KafkaZkClient and kafka.zookeeper.ZooKeeperClient of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from reference.model import BrokerEndPoint, LeaderAndIsr, TopicPartition
from reference.ports import (
    Check,
    Create,
    Delete,
    SessionState,
    SetData,
    ZnodeStat,
    ZooKeeperClient,
    ZooKeeperOp,
)
from reference.trace import Kind, Tracer
from reference.zk import zk_data
from reference.zk.errors import (
    BadVersionError,
    ClientClosedError,
    ConnectionLossError,
    ControllerMovedError,
    MultiError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    ZnodeFormatError,
    ZooKeeperError,
)
from reference.zk.pipelining import pipelined
from reference.zk.zk_data import LeaderIsrAndControllerEpoch, TopicAssignment
from reference.zk.znode_watches import Handler, ZnodeWatches

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ControllerFence:
    """A controller's term: its epoch and the version that ``/controller_epoch`` has during it."""

    controller_epoch: int
    zk_version: int


@dataclass(frozen=True, slots=True)
class ElectionWon:
    fence: ControllerFence
    zxid: int
    """Of the multi that granted the epoch."""


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    broker_id: int
    session_id: int
    """Of the session that owns it, which may be a dead one of the same broker."""


@dataclass(frozen=True, slots=True)
class CommittedState:
    """A partition state that is in ZooKeeper."""

    state: LeaderIsrAndControllerEpoch
    zxid: int


StateResult = CommittedState | ZooKeeperError
StateChangeHandler = Callable[[SessionState], Awaitable[None] | None]


class KafkaZkClient:
    """See the module. Errors are those of ``reference.zk.errors``."""

    def __init__(self, zookeeper: ZooKeeperClient, *, tracer: Tracer) -> None:
        self._zookeeper = zookeeper
        self._tracer = tracer
        self._state = SessionState.CONNECTED
        self._session_changes: list[asyncio.Future[None]] = []
        self._state_change_handlers: list[StateChangeHandler] = []
        self._data_watches = ZnodeWatches()
        self._child_watches = ZnodeWatches()
        zookeeper.add_session_listener(self._on_session_state)

    # Session and watches

    @property
    def session_id(self) -> int:
        return self._zookeeper.session_id

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        """What the handler returns for EXPIRED is awaited before the next session opens."""
        self._state_change_handlers.append(handler)

    def register_znode_change_handler(self, path: str, handler: Handler) -> None:
        """Call the handler when the znode is created, deleted or written; armed by the next read of it."""
        self._data_watches.register(path, handler)

    def register_znode_child_change_handler(self, path: str, handler: Handler) -> None:
        """Call the handler when children come or go; armed by the next listing."""
        self._child_watches.register(path, handler)

    def unregister_znode_change_handler(self, path: str) -> None:
        self._data_watches.unregister(path)

    def unregister_znode_child_change_handler(self, path: str) -> None:
        self._child_watches.unregister(path)

    async def retry_request_until_connected(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Return the request's result, asking again after every lost connection while the session lives."""
        while True:
            try:
                return await request()
            except ConnectionLossError:
                await self.wait_until_connected()

    async def wait_until_connected(self) -> None:
        """Raises ``SessionExpiredError`` as soon as the session is over."""
        while self._state is not SessionState.CONNECTED:
            if self._state is SessionState.EXPIRED:
                raise SessionExpiredError("waiting for the connection")
            await self.next_session_change()

    async def retry_across_sessions(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Return the request's result, asking again in the next session whenever one expires.

        Only for what rests on nothing that a session holds: finding or creating persistent znodes at start-up.
        """
        while True:
            try:
                return await request()
            except ClientClosedError:
                raise
            except SessionExpiredError as error:
                _logger.info("asking again in the next session: %s", error)
                while self._state is not SessionState.CONNECTED:
                    await self.next_session_change()

    async def next_session_change(self) -> None:
        """Return when the session's state changes next."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._session_changes.append(change)
        await change

    # Election

    async def get_controller(self) -> ControllerZnode | None:
        """Who is in ``/controller``; arms its change handler whether it exists or not."""
        while True:
            if await self._exists(zk_data.CONTROLLER) is None:
                return None
            try:
                data, stat = await self._get(zk_data.CONTROLLER)
            except NoNodeError:
                continue
            return ControllerZnode(zk_data.decode_controller(data), stat.ephemeral_owner)

    async def get_controller_epoch(self) -> tuple[int, ZnodeStat] | None:
        try:
            data, stat = await self._get(zk_data.CONTROLLER_EPOCH)
        except NoNodeError:
            return None
        return zk_data.decode_controller_epoch(data), stat

    async def register_controller_and_increment_controller_epoch(
        self, broker_id: int, timestamp_ms: int
    ) -> ElectionWon:
        """Take the office and the next epoch in one multi, or neither; raises ``ControllerMovedError`` when lost."""
        epoch, stat = await self._get_or_create_controller_epoch()
        new_epoch = epoch + 1
        ops: list[ZooKeeperOp] = [
            Create(
                zk_data.CONTROLLER,
                zk_data.encode_controller(broker_id, timestamp_ms),
                ephemeral=True,
            ),
            SetData(
                zk_data.CONTROLLER_EPOCH, zk_data.encode_controller_epoch(new_epoch), stat.version
            ),
        ]
        try:
            results = await self.retry_request_until_connected(lambda: self._zookeeper.multi(ops))
        except MultiError as error:
            return await self._won_after_all(broker_id, new_epoch, error)
        written = _written(results)
        return ElectionWon(ControllerFence(new_epoch, written.version), written.mzxid)

    async def _get_or_create_controller_epoch(self) -> tuple[int, ZnodeStat]:
        while (found := await self.get_controller_epoch()) is None:
            try:
                await self._create(
                    zk_data.CONTROLLER_EPOCH,
                    zk_data.encode_controller_epoch(zk_data.INITIAL_CONTROLLER_EPOCH),
                )
            except NodeExistsError:
                continue
        return found

    async def _won_after_all(self, broker_id: int, epoch: int, error: MultiError) -> ElectionWon:
        """The multi was refused: by a rival, or by one's own first attempt whose reply was lost."""
        controller = await self.get_controller()
        current = await self.get_controller_epoch()
        if (
            controller is not None
            and current is not None
            and controller.broker_id == broker_id
            and controller.session_id == self.session_id
            and current[0] == epoch
        ):
            return ElectionWon(ControllerFence(epoch, current[1].version), current[1].mzxid)
        raise ControllerMovedError(f"lost the election of epoch {epoch}") from error

    async def delete_controller(self, fence: ControllerFence) -> None:
        """Give up the office; raises ``ControllerMovedError`` when it is somebody else's already."""
        try:
            await self._write_fenced(Delete(zk_data.CONTROLLER), fence)
        except NoNodeError:
            return

    # Brokers

    async def make_sure_persistent_paths_exist(self) -> None:
        for path in zk_data.PERSISTENT_PATHS:
            parts = path.split("/")[1:]
            for depth in range(1, len(parts) + 1):
                try:
                    await self._create("/" + "/".join(parts[:depth]), b"")
                except NodeExistsError:
                    continue

    async def get_or_create_cluster_id(self, generate: Callable[[], str]) -> str:
        """Return the cluster's id; the first broker of a cluster writes what ``generate`` returns."""
        while True:
            try:
                data, _ = await self._get(zk_data.CLUSTER_ID)
                return zk_data.decode_cluster_id(data)
            except NoNodeError:
                try:
                    await self._create(zk_data.CLUSTER_ID, zk_data.encode_cluster_id(generate()))
                except NodeExistsError:
                    continue

    async def register_broker(self, broker: BrokerEndPoint, timestamp_ms: int) -> ZnodeStat:
        """Create ``/brokers/ids/N`` in this session and return its stat; czxid is the broker epoch.

        A znode that another session owns belongs to this broker's previous life: it is waited for.
        """
        path = zk_data.broker_path(broker.id)
        data = zk_data.encode_broker(broker, timestamp_ms)
        while True:
            try:
                _, stat = await self.retry_request_until_connected(
                    lambda: self._zookeeper.create(path, data, ephemeral=True)
                )
            except NodeExistsError:
                existing = await self._own_or_gone(path)
                if existing is not None:
                    return existing
            else:
                return stat

    async def _own_or_gone(self, path: str) -> ZnodeStat | None:
        """Return the stat of an ephemeral of this session; one of another session is waited for: None."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stat = await self.retry_request_until_connected(
            lambda: self._zookeeper.exists(path, lambda: _resolve(gone))
        )
        if stat is None or stat.ephemeral_owner == self.session_id:
            return stat
        _logger.info(
            "%s belongs to session 0x%x; waiting for it to end",
            path,
            stat.ephemeral_owner & 0xFFFFFFFFFFFFFFFF,
        )
        await gone
        return None

    async def get_all_brokers_and_epochs(self) -> dict[BrokerEndPoint, int]:
        """Live brokers with their epochs, by id; arms the child change handler of ``/brokers/ids``."""
        names = await self._get_children(zk_data.BROKER_IDS)
        ids = sorted(int(name) for name in names if name.isdigit())

        async def read(broker_id: int) -> tuple[BrokerEndPoint, int] | None:
            try:
                data, stat = await self._get(zk_data.broker_path(broker_id))
            except NoNodeError:
                return None
            return zk_data.decode_broker(broker_id, data), stat.czxid

        return dict(found for found in await pipelined(ids, read) if found is not None)

    # Topics

    async def get_all_topics(self) -> list[str]:
        """Names, sorted; arms the child change handler of ``/brokers/topics``."""
        return sorted(await self._get_children(zk_data.TOPICS))

    async def get_replica_assignments(self, topics: Sequence[str]) -> list[TopicAssignment]:
        """Assignments of those topics that exist and can be read (a znode of another format is logged)."""

        async def read(topic: str) -> TopicAssignment | None:
            try:
                data, _ = await self._get(zk_data.topic_path(topic))
                return zk_data.decode_topic(topic, data)
            except NoNodeError:
                return None
            except ZnodeFormatError as error:
                _logger.error("topic %s is ignored: %s", topic, error)
                return None

        return [found for found in await pipelined(topics, read) if found is not None]

    async def topic_exists(self, topic: str) -> bool:
        return await self._exists(zk_data.topic_path(topic)) is not None

    async def create_topic(self, assignment: TopicAssignment, config: Mapping[str, str]) -> None:
        """Write the topic's configuration, then its assignment; raises ``NodeExistsError`` if it exists."""
        await self._create_or_set(
            zk_data.topic_config_path(assignment.topic), zk_data.encode_topic_config(config)
        )
        data = zk_data.encode_topic(assignment)
        try:
            await self._create(zk_data.topic_path(assignment.topic), data)
        except NodeExistsError:
            # The id was drawn for this call: whoever reads it back wrote it.
            existing = await self.get_replica_assignments([assignment.topic])
            if not existing or existing[0].topic_id != assignment.topic_id:
                raise

    # Partition states

    async def get_topic_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """The states that exist; one in another format is logged and left out."""

        async def read(
            topic_partition: TopicPartition,
        ) -> tuple[TopicPartition, LeaderIsrAndControllerEpoch] | None:
            try:
                data, stat = await self._get(zk_data.state_path(topic_partition))
                return topic_partition, zk_data.decode_state(topic_partition, data, stat.version)
            except NoNodeError:
                return None
            except ZnodeFormatError as error:
                _logger.error("%s is ignored: %s", topic_partition, error)
                return None

        return dict(found for found in await pipelined(partitions, read) if found is not None)

    async def create_topic_partition_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Create the state znodes, and their parents where they are missing. Raises ``ControllerMovedError``."""

        async def ensure(path: str) -> None:
            try:
                await self._write_fenced(Create(path, b""), fence)
            except NodeExistsError:
                return

        await pipelined(sorted({zk_data.partitions_path(tp.topic) for tp in states}), ensure)
        await pipelined([zk_data.partition_path(tp) for tp in states], ensure)

        async def create(topic_partition: TopicPartition) -> tuple[TopicPartition, StateResult]:
            state = LeaderIsrAndControllerEpoch(
                replace(states[topic_partition], partition_epoch=0), fence.controller_epoch
            )
            op = Create(zk_data.state_path(topic_partition), zk_data.encode_state(state))
            try:
                stat = await self._write_fenced(op, fence)
            except (NodeExistsError, NoNodeError) as error:
                return topic_partition, error
            assert stat is not None
            return topic_partition, CommittedState(state, stat.mzxid)

        return dict(await pipelined(list(states), create))

    async def update_leader_and_isr(
        self, states: Mapping[TopicPartition, LeaderAndIsr], fence: ControllerFence
    ) -> dict[TopicPartition, StateResult]:
        """Compare-and-set each state on its ``partition_epoch``; a committed one carries the new epoch.

        A conflict is a ``BadVersionError`` among the results. Raises ``ControllerMovedError``.
        """

        async def write(topic_partition: TopicPartition) -> tuple[TopicPartition, StateResult]:
            wanted = states[topic_partition]
            state = LeaderIsrAndControllerEpoch(
                replace(wanted, partition_epoch=wanted.partition_epoch + 1), fence.controller_epoch
            )
            op = SetData(
                zk_data.state_path(topic_partition),
                zk_data.encode_state(state),
                wanted.partition_epoch,
            )
            try:
                stat = await self._write_fenced(op, fence)
            except (BadVersionError, NoNodeError) as error:
                return topic_partition, error
            assert stat is not None
            return topic_partition, CommittedState(state, stat.mzxid)

        return dict(await pipelined(list(states), write))

    # Fenced writes

    def fenced(self, ops: Sequence[ZooKeeperOp], fence: ControllerFence) -> list[ZooKeeperOp]:
        """Return the multi that does ``ops`` only while the fence's controller epoch is the current one."""
        return [Check(zk_data.CONTROLLER_EPOCH, fence.zk_version), *ops]

    async def _write_fenced(
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
                results = await self._zookeeper.multi(ops)
            except ZooKeeperError as error:
                unknown = unknown or isinstance(error, ConnectionLossError)
                self._trace_outcome(op, fence, error.code)
                raise
            stat = results[-1]
            self._trace_outcome(op, fence, "NONE", stat)
            return stat

        try:
            return await self.retry_request_until_connected(attempt)
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
            data, stat = await self._get(op.path)
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

    # Single operations

    async def _get(self, path: str) -> tuple[bytes, ZnodeStat]:
        return await self.retry_request_until_connected(
            lambda: self._data_watches.read(path, lambda watch: self._zookeeper.get(path, watch))
        )

    async def _exists(self, path: str) -> ZnodeStat | None:
        return await self.retry_request_until_connected(
            lambda: self._data_watches.read(path, lambda watch: self._zookeeper.exists(path, watch))
        )

    async def _get_children(self, path: str) -> list[str]:
        return await self.retry_request_until_connected(
            lambda: self._child_watches.read(
                path, lambda watch: self._zookeeper.get_children(path, watch)
            )
        )

    async def _create(self, path: str, data: bytes) -> ZnodeStat:
        _, stat = await self.retry_request_until_connected(
            lambda: self._zookeeper.create(path, data)
        )
        return stat

    async def _create_or_set(self, path: str, data: bytes) -> None:
        try:
            await self._create(path, data)
        except NodeExistsError:
            await self.retry_request_until_connected(lambda: self._zookeeper.set_data(path, data))

    def _on_session_state(self, state: SessionState) -> Awaitable[None] | None:
        self._state = state
        self._tracer.event(Kind.SESSION_STATE, session=self.session_id, detail=state.value)
        changes, self._session_changes = self._session_changes, []
        for change in changes:
            _resolve(change)
        waits = [done for handler in self._state_change_handlers if (done := handler(state))]
        if not waits:
            return None

        async def all_done() -> None:
            for done in waits:
                await done

        return all_done()


def _written(results: Sequence[ZnodeStat | None]) -> ZnodeStat:
    stat = results[-1]
    assert stat is not None, "a setData leaves a stat"
    return stat


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
