"""``corrupt-tail``: the victim dies, and the ends of its logs are torn or damaged when it starts again.

What was written and not synced may reach the medium in part, or wrong. A broker must find that when it recovers: cut
the log before the first batch that is torn or whose CRC does not match, and fetch the rest from the leader. Where
``power-cut`` loses, this leaves something that must not be believed. Synced bytes are not touched.

As for ``power-cut``, a broker is spared as long as it is the only one of some partition that is both in the ISR and
unharmed, and ``duration_s`` should outlast the session.

Effect: the process is gone, and at least one of its logs is damaged. Undone: a new process of the node lives.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar, Final

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.kill import Kill, KillStrike
from nemesis.faults.power_cut import require_survivors
from nemesis.interfaces.runtime import Capability

PATIENCE_S: Final = 4.0
POLL_INTERVAL_S: Final = 0.05


class CorruptTail(Kill, frozen=True, kw_only=True):
    """Kill the victims, damage the unsynced ends of their logs, and start them again after ``duration_s``."""

    name: ClassVar[str] = "corrupt-tail"
    summary: ClassVar[str] = (
        "kill brokers, tear or damage the unsynced ends of their logs, start them again later"
    )
    capability: ClassVar[Capability] = Capability.TAIL

    async def aim(self, context: FaultContext, rng: Random) -> CorruptTailStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        await require_survivors(victims, context)
        return CorruptTailStrike(context, victims)


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
        runtime, loop = self._context.runtime, asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while not await runtime.unsynced_bytes(node) and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        killed = await runtime.kill(node)
        return killed | await runtime.corrupt_tail(node)
