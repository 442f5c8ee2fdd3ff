"""``corrupt-tail``: the victim dies, and the ends of its logs are torn or damaged when it starts again.

What was written and not synced may reach the medium in part, or wrong. A broker must find that when it recovers: cut
the log before the first batch that is torn or whose CRC does not match, and fetch the rest from the leader. Where
``power-cut`` loses, this leaves something that must not be believed. Synced bytes are not touched.

Which brokers are spared, and why ``duration_s`` should outlast the session: see ``unsynced_writes``. One without
replicas, such as one that was just drained, has nothing to damage.

Effect: the process is gone, and at least one of its logs is damaged. Undone: a new process of the node lives.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.kill import KillStrike
from nemesis.faults.unsynced_writes import HarmsUnsynced
from nemesis.interfaces.disks import LogTails
from nemesis.interfaces.processes import Processes
from nemesis.interfaces.unsupported import supported

PATIENCE_S: Final = 4.0
POLL_INTERVAL_S: Final = 0.05


class CorruptTailStrike(KillStrike):
    """One that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        super().__init__(context, victims)
        self.intent = {"signal": "SIGKILL", "tail": "damaged"}

    async def apply(self) -> Measured:
        killed = await super().apply()
        is_damaged = all(
            killed.detail[node]["damaged"] for node in self.victims if node in killed.detail
        )
        return Measured(is_effective=killed.is_effective and is_damaged, detail=killed.detail)

    async def _end(self, node: str) -> dict[str, Any]:
        """Wait a little until there is something to damage: a broker syncs all it has when it starts."""
        log_tails, loop = supported(self._context.disks.log_tails), asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while not await log_tails.unsynced_bytes(node) and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        killed = await self._context.processes.kill(node)
        return killed | await log_tails.corrupt(node)


class CorruptTail(HarmsUnsynced, frozen=True, kw_only=True):
    """Kill the victims, damage the unsynced ends of their logs, and start them again after ``duration_s``."""

    name: ClassVar[str] = "corrupt-tail"
    summary: ClassVar[str] = (
        "kills brokers and damages the unsynced ends of their logs; they start again after `duration_s`"
    )
    effect: ClassVar[str] = (
        "the process is gone, and at least one log is damaged; the damage to each file is noted"
    )
    needs: ClassVar[frozenset[type]] = frozenset({Processes, LogTails})
    needs_replicas: ClassVar[bool] = True

    def strike(self, context: FaultContext, victims: list[str]) -> KillStrike:
        return CorruptTailStrike(context, victims)
