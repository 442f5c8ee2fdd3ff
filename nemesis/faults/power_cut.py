"""``power-cut``: the victim's machine loses its power, and has it again when the time is over.

More than a kill: what had been written and not synced is lost or torn, also records that were acknowledged. Kafka
promises that acknowledged records survive that only while another replica in the ISR has them, so a broker is spared
as long as it is the only one of some partition that is both in the ISR and unharmed. For the same reason
``duration_s`` should outlast the session: a broker that is back before anybody noticed is still in the ISR, with less
than the leader counts on (KIP-966 tells what comes of that).

Effect: the process is gone; what its disk lost is written down. Undone: a new process of the node lives.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.kill import Kill, KillStrike
from nemesis.interfaces.runtime import Capability


class PowerCut(Kill, frozen=True, kw_only=True):
    """Cut the power of the victims and start them again after ``duration_s``."""

    name: ClassVar[str] = "power-cut"
    summary: ClassVar[str] = (
        "kill brokers, lose what their disks had not synced, start them again later"
    )
    capability: ClassVar[Capability] = Capability.POWER_CUT

    async def aim(self, context: FaultContext, rng: Random) -> PowerCutStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        await require_survivors(victims, context)
        return PowerCutStrike(context, victims)


class PowerCutStrike(KillStrike):
    """One power cut that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        super().__init__(context, victims)
        self.intent = {"power": "off"}

    async def _end(self, node: str) -> dict[str, Any]:
        return await self._context.runtime.power_cut(node)


async def require_survivors(victims: list[str], context: FaultContext) -> None:
    """Raise ``SelectorUnresolved`` when a partition would be left without an unharmed member of its ISR."""
    snapshot = await context.view.snapshot()
    for (topic, partition), state in sorted(snapshot.partitions.items()):
        members = [selectors.node_of(member) for member in state.isr]
        survivors = [
            node
            for node in members
            if node not in victims and not context.touched[node] and context.runtime.is_alive(node)
        ]
        if not survivors and any(victim in members for victim in victims):
            raise SelectorUnresolved(
                f"{topic}-{partition} has no other unharmed replica in its ISR than {', '.join(victims)}"
            )
