"""``power-cut``: the victim's machine loses its power, and has it again when the time is over.

More than a kill: what had been written and not synced is lost or torn, also records that were acknowledged
(``unsynced_writes`` describes which brokers are spared). With ``stops_first`` the broker is stopped before (SIGTERM).
It leaves the mark of a clean stop, and then its disk has to hold what the mark promises.

Effect: the process is gone; what its disk lost is written down. Undone: a new process of the node lives.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar, Final, Self

from msgspec import Meta, structs

from nemesis.faults.base import DrawRange, FaultContext
from nemesis.faults.kill import KillStrike
from nemesis.faults.unsynced_writes import HarmsUnsynced
from nemesis.interfaces.disks import PowerSupply
from nemesis.interfaces.processes import Processes
from nemesis.interfaces.unsupported import supported

STOP_GRACE_S: Final = 3.0
_STOPPED_FIRST: Final = 0.3
"""The share of drawn power cuts in which the broker is stopped before."""


class PowerCutStrike(KillStrike):
    """One power cut that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        super().__init__(context, victims)
        self.intent = {"power": "off"}

    async def _end(self, node: str) -> dict[str, Any]:
        return await supported(self._context.disks.power).cut(node)


class StoppedPowerCutStrike(PowerCutStrike):
    """The same, of brokers that are stopped before, or killed if they do not stop in time."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        super().__init__(context, victims)
        self.intent |= {"signal": "SIGTERM", "grace_s": STOP_GRACE_S}

    async def _end(self, node: str) -> dict[str, Any]:
        ended = await self._context.processes.terminate(node, grace_s=STOP_GRACE_S)
        return ended | await supported(self._context.disks.power).cut_stopped(node)


class PowerCut(HarmsUnsynced, frozen=True, kw_only=True):
    """Cut the power of the victims and start them again after ``duration_s``."""

    name: ClassVar[str] = "power-cut"
    summary: ClassVar[str] = (
        "a broker's machine loses its power and what its disk had not synced; it boots after `duration_s`"
    )
    effect: ClassVar[str] = "the process is gone; the lost bytes and names are noted"
    needs: ClassVar[frozenset[type]] = frozenset({Processes, PowerSupply})

    stops_first: Annotated[
        bool, Meta(description="whether SIGTERM stops the broker before, for 3 s at most")
    ] = False

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        drawn = super().draw(rng, durations)
        return structs.replace(drawn, stops_first=rng.random() < _STOPPED_FIRST)

    def strike(self, context: FaultContext, victims: list[str]) -> KillStrike:
        of_kind = StoppedPowerCutStrike if self.stops_first else PowerCutStrike
        return of_kind(context, victims)
