"""``power-cut``: the victim's machine loses its power, and has it again when the time is over.

More than a kill: what had been written and not synced is lost or torn, also records that were acknowledged
(``unsynced_writes`` describes which brokers are spared).

Effect: the process is gone; what its disk lost is written down. Undone: a new process of the node lives.
"""

from __future__ import annotations

from typing import Any, ClassVar

from nemesis.faults.base import FaultContext
from nemesis.faults.kill import KillStrike
from nemesis.faults.unsynced_writes import HarmsUnsynced
from nemesis.interfaces.disks import PowerSupply
from nemesis.interfaces.processes import Processes
from nemesis.interfaces.unsupported import supported


class PowerCutStrike(KillStrike):
    """One power cut that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        super().__init__(context, victims)
        self.intent = {"power": "off"}

    async def _end(self, node: str) -> dict[str, Any]:
        return await supported(self._context.disks.power).cut(node)


class PowerCut(HarmsUnsynced, frozen=True, kw_only=True):
    """Cut the power of the victims and start them again after ``duration_s``."""

    name: ClassVar[str] = "power-cut"
    summary: ClassVar[str] = (
        "a broker's machine loses its power and what its disk had not synced; it boots after `duration_s`"
    )
    effect: ClassVar[str] = "the process is gone; the lost bytes and names are noted"
    needs: ClassVar[frozenset[type]] = frozenset({Processes, PowerSupply})
    strike: ClassVar[type[KillStrike]] = PowerCutStrike
