"""AlterPartition is taken from whoever sends it: neither leader epoch nor partition epoch counts.

A leader that was replaced while it could not be reached goes on asking for the ISR that it saw last. Kafka refuses it
with FENCED_LEADER_EPOCH or INVALID_UPDATE_VERSION (KIP-497); where the state is only compared with itself, as before
0.8.1 by writes without an expected version, the ISR of the new leader is overwritten, and it need not be in it.

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.alter_partition import Change, topic_partition_of


def _unfenced(_correct: Any) -> Callable[..., Any]:
    def decide(context: Any, _broker_id: int, item: Any) -> Any:
        known = context.leadership.get(topic_partition_of(context, item))
        if known is None:
            return ErrorCode.unknown_topic_or_partition
        isr = tuple(member for member, _ in item.new_isr)
        return Change(replace(known.leader_and_isr, isr=isr))

    return decide


MUTANT = Mutant(
    name="deposed-leader-changes-isr",
    property="leader-from-isr",
    summary="the controller takes AlterPartition from leaders of old epochs, with old views",
    replacements=(
        Replacement(
            "nemesis.reference.controller.isr_changes", "decide", _unfenced, is_comparable=True
        ),
    ),
)
