"""What ``power-cut`` and ``corrupt-tail`` have in common: a broker dies, and its disk harms what was not synced.

Kafka promises that acknowledged records survive that only while another replica in the ISR has them, so a broker is
spared as long as it is the only one of some partition that is both in the ISR and unharmed. ``spares_last: false``
strikes it all the same. The intent lists as ``last_in_isr`` the partitions of which no other member of the ISR runs:
what they lose then is known behaviour (KIP-966). A member that runs, and is cut off, say, has what was acknowledged and
can be elected, so a loss would be something else.

For the same reason ``duration_s`` should outlast the session: a broker that is back before its death was noticed is
still in the ISR, with less than the leader counts on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.kill import Kill, KillStrike
from nemesis.history.vocabulary.faults import LAST_IN_ISR
from nemesis.support.node_names import node_of


class HarmsUnsynced(Kill, frozen=True, kw_only=True):
    """The base of these faults: kill the victims, harm their unsynced writes, start them after ``duration_s``."""

    needs_replicas: ClassVar[bool] = False
    """Whether the fault has no effect on a broker without replicas."""

    spares_last: Annotated[
        bool, Meta(description="whether the last unharmed replica of an ISR is spared")
    ] = True

    @abstractmethod
    def strike(self, context: FaultContext, victims: list[str]) -> KillStrike:
        """Return what carries the fault out on the victims."""

    async def aim(self, context: FaultContext, rng: Random) -> KillStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        snapshot = await context.view.snapshot()
        if self.needs_replicas and (empty := _without_replicas(snapshot, victims)):
            raise SelectorUnresolved(f"{empty[0]} has no replica whose log could be harmed")
        if self.spares_last:
            untouched = [node for node in context.cluster.brokers if not context.touched[node]]
            last = _without_survivors(snapshot, victims, filter(context.is_alive, untouched))
            if last:
                raise SelectorUnresolved(
                    f"{last[0]} has no other unharmed replica in its ISR than {', '.join(victims)}"
                )
        strike = self.strike(context, victims)
        alive = filter(context.is_alive, context.cluster.brokers)
        running = (node for node in alive if node not in context.stopped)
        if last := _without_survivors(snapshot, victims, running):
            strike.intent[LAST_IN_ISR] = last
        return strike


def _without_survivors(
    snapshot: ClusterSnapshot, victims: Sequence[str], others: Iterable[str]
) -> list[str]:
    """Return the partitions that lose the victims and have none of the other brokers in their ISR."""
    survivors = set(others).difference(victims)
    members = {
        f"{topic}-{partition}": {node_of(member) for member in state.isr}
        for (topic, partition), state in sorted(snapshot.partitions.items())
    }
    return [
        name
        for name, isr in members.items()
        if not isr.isdisjoint(victims) and isr.isdisjoint(survivors)
    ]


def _without_replicas(snapshot: ClusterSnapshot, victims: Sequence[str]) -> list[str]:
    """Return the victims that hold no replica, or none that stays when a move has ended."""
    states = snapshot.partitions.values()
    holders = {node_of(replica) for state in states for replica in state.target}
    return [victim for victim in victims if victim not in holders]
