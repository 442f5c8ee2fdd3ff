"""What ``power-cut`` and ``corrupt-tail`` have in common: a broker dies, and its disk harms what was not synced.

Kafka promises that acknowledged records survive that only while another replica in the ISR has them, so a broker is
spared as long as it is the only one of some partition that is both in the ISR and unharmed. ``spares_last: false``
strikes it all the same, and the intent lists those partitions as ``last_in_isr``: what they lose then is known
behaviour (KIP-966).

For the same reason ``duration_s`` should outlast the session: a broker that is back before its death was noticed is
still in the ISR, with less than the leader counts on.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.kill import Kill, KillStrike
from nemesis.support.node_names import node_of

LAST_IN_ISR: Final = "last_in_isr"
"""In the intent of such a fault: the partitions whose last unharmed replica in the ISR was struck."""


class HarmsUnsynced(Kill, frozen=True, kw_only=True):
    """The base of these faults: kill the victims, harm their unsynced writes, start them after ``duration_s``."""

    strike: ClassVar[type[KillStrike]]
    """Carries the fault out on the victims."""

    spares_last: Annotated[
        bool, Meta(description="whether the last unharmed replica of an ISR is spared")
    ] = True

    async def aim(self, context: FaultContext, rng: Random) -> KillStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        last = await _without_survivors(victims, context)
        if last and self.spares_last:
            raise SelectorUnresolved(
                f"{last[0]} has no other unharmed replica in its ISR than {', '.join(victims)}"
            )
        strike = self.strike(context, victims)
        if last:
            strike.intent[LAST_IN_ISR] = last
        return strike


async def _without_survivors(victims: Sequence[str], context: FaultContext) -> list[str]:
    """Return the partitions that would be left without an unharmed member of their ISR."""
    snapshot = await context.view.snapshot()
    last = []
    for (topic, partition), state in sorted(snapshot.partitions.items()):
        members = [node_of(member) for member in state.isr]
        survivors = [
            node
            for node in members
            if node not in victims and not context.touched[node] and context.is_alive(node)
        ]
        if not survivors and any(victim in members for victim in victims):
            last.append(f"{topic}-{partition}")
    return last
