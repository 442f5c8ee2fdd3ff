"""``delete-controller``: an operator deletes ``/controller`` while its owner's session lives.

Operators do that to move the controller by hand (``deleteall /controller`` in ZooKeeper's shell). The session of the
deposed controller goes on: its broker stays registered, its watches fire, and it takes part in the next election. So
it must resign because the znode is gone, and not because its session ended, which is how every other fault deposes it.

Effect: the znode of the old controller is gone. Undone: a controller has been elected in its place.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Final

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.cluster_view import Ephemeral
from nemesis.faults.operator import OperatorFault, controller_now
from nemesis.support.node_names import node_of

CONTROLLER_PATH: Final = "/controller"


class DeleteController(OperatorFault, frozen=True, kw_only=True):
    """Delete ``/controller``, once."""

    name: ClassVar[str] = "delete-controller"
    summary: ClassVar[str] = (
        "deletes `/controller` as an operator does; the session of the controller lives on"
    )
    effect: ClassVar[str] = "the znode of the old controller is gone"
    heal: ClassVar[str] = "a controller has been elected since"

    async def aim(self, context: FaultContext, rng: Random) -> DeleteControllerStrike:
        del rng
        return DeleteControllerStrike(context, await controller_now(context))


class DeleteControllerStrike:
    """A controller whose znode is about to go."""

    def __init__(self, context: FaultContext, controller: Ephemeral) -> None:
        self._context = context
        self._controller = controller
        self.victims = [node_of(controller.broker_id)]
        self.intent: dict[str, Any] = {
            "deleted": CONTROLLER_PATH,
            "czxid": controller.czxid,
            "session": controller.session,
        }

    async def apply(self) -> Measured:
        existed = await self._context.zookeeper.delete(CONTROLLER_PATH)
        now = await self._context.view.controller_now()
        return Measured(is_effective=existed and not self._is_old(now), detail={"existed": existed})

    async def undo(self) -> None:
        """The brokers elect a controller by themselves."""

    async def verify(self) -> Measured:
        now = await self._context.view.controller_now()
        return Measured(
            is_effective=now is not None and not self._is_old(now),
            detail={} if now is None else {"controller": node_of(now.broker_id)},
        )

    def _is_old(self, now: Ephemeral | None) -> bool:
        return now is not None and now.czxid == self._controller.czxid
