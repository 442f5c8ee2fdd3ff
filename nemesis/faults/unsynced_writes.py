"""What ``power-cut`` and ``corrupt-tail`` have in common: a broker dies, and its disk harms what was not synced.

Kafka promises that acknowledged records survive that only while another replica in the ISR has them, so a broker is
spared as long as it is the only one of some partition that is both in the ISR and unharmed. For the same reason
``duration_s`` should outlast the session: a broker that is back before its death was noticed is still in the ISR, with
less than the leader counts on (KIP-966 describes what results from that).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.kill import Kill, KillStrike
from nemesis.support.node_names import node_of


class HarmsUnsynced(Kill, frozen=True, kw_only=True):
    """The base of these faults: kill the victims, harm their unsynced writes, start them after ``duration_s``."""

    strike: ClassVar[type[KillStrike]]
    """Carries the fault out on the victims."""

    async def aim(self, context: FaultContext, rng: Random) -> KillStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        await _require_survivors(victims, context)
        return self.strike(context, victims)


async def _require_survivors(victims: Sequence[str], context: FaultContext) -> None:
    """Raise ``SelectorUnresolved`` when a partition would be left without an unharmed member of its ISR."""
    snapshot = await context.view.snapshot()
    for (topic, partition), state in sorted(snapshot.partitions.items()):
        members = [node_of(member) for member in state.isr]
        survivors = [
            node
            for node in members
            if node not in victims and not context.touched[node] and context.is_alive(node)
        ]
        if not survivors and any(victim in members for victim in victims):
            raise SelectorUnresolved(
                f"{topic}-{partition} has no other unharmed replica in its ISR than {', '.join(victims)}"
            )
