"""Who is the controller: ``/controller`` and ``/controller_epoch``.

The office and the next epoch are taken in one multi, or neither is. One whose reply was lost is recognised by broker,
session and epoch. Source: kafka.zk.KafkaZkClient of Kafka 3.9.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from nemesis.reference.ports import Create, Delete, SetData, ZnodeStat, ZooKeeperOp
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.errors import (
    ControllerMovedError,
    MultiError,
    NodeExistsError,
    NoNodeError,
    ZnodeFormatError,
)
from nemesis.reference.zk.fenced_writes import ControllerFence, FencedWrites
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession

_logger = logging.getLogger(__name__)

NO_CONTROLLER: Final = -1


@dataclass(frozen=True, slots=True)
class ElectionWon:
    fence: ControllerFence
    zxid: int
    """Of the multi that granted the epoch."""


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    broker_id: int
    """``NO_CONTROLLER`` when it holds what nobody can read."""
    session_id: int
    """Of the session that owns it, which may be a dead one of the same broker."""


class ControllerElection:
    """See the module."""

    def __init__(self, session: ZooKeeperSession, fenced: FencedWrites) -> None:
        self._session = session
        self._fenced = fenced

    async def get_controller(self) -> ControllerZnode | None:
        """Who is in ``/controller``; arms its change handler whether it exists or not."""
        while True:
            if await self._session.exists(zk_data.CONTROLLER) is None:
                return None
            try:
                data, stat = await self._session.get(zk_data.CONTROLLER)
            except NoNodeError:
                continue
            try:
                broker_id = zk_data.decode_controller(data)
            except ZnodeFormatError as error:
                _logger.error("who the controller is cannot be read: %s", error)
                broker_id = NO_CONTROLLER
            return ControllerZnode(broker_id, stat.ephemeral_owner)

    async def get_controller_epoch(self) -> tuple[int, ZnodeStat] | None:
        try:
            data, stat = await self._session.get(zk_data.CONTROLLER_EPOCH)
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
            results = await self._session.retry_request_until_connected(
                lambda: self._session.writes.multi(ops)
            )
        except MultiError as error:
            return await self._won_after_all(broker_id, new_epoch, error)
        written = results[-1]
        assert written is not None, "a setData leaves a stat"
        return ElectionWon(ControllerFence(new_epoch, written.version), written.mzxid)

    async def _get_or_create_controller_epoch(self) -> tuple[int, ZnodeStat]:
        while (epoch_and_stat := await self.get_controller_epoch()) is None:
            try:
                await self._session.create(
                    zk_data.CONTROLLER_EPOCH,
                    zk_data.encode_controller_epoch(zk_data.INITIAL_CONTROLLER_EPOCH),
                )
            except NodeExistsError:
                continue
        return epoch_and_stat

    async def _won_after_all(self, broker_id: int, epoch: int, error: MultiError) -> ElectionWon:
        """The multi was refused: by a rival, or by one's own first attempt whose reply was lost."""
        controller = await self.get_controller()
        current = await self.get_controller_epoch()
        if (
            controller is not None
            and current is not None
            and controller.broker_id == broker_id
            and controller.session_id == self._session.session_id
            and current[0] == epoch
        ):
            return ElectionWon(ControllerFence(epoch, current[1].version), current[1].mzxid)
        raise ControllerMovedError(f"lost the election of epoch {epoch}") from error

    async def delete_controller(self, fence: ControllerFence) -> None:
        """Give up the office; raises ``ControllerMovedError`` when it is somebody else's already."""
        try:
            await self._fenced.write(Delete(zk_data.CONTROLLER), fence)
        except NoNodeError:
            return
