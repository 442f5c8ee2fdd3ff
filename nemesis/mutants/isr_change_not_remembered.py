"""A controller writes the ISR that a leader proposes, and keeps the ISR before it in memory, under the new version.

The leader learns that its ISR is committed. All other brokers receive the old one, and the next election starts from
it: a replica that has left the ISR may become the leader.

Must be caught by: states-sent-as-written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Write = Callable[..., Awaitable[Any]]


def _forgets_the_isr(correct: Write) -> Write:
    async def write_isr_changes(self: Any, changes: Any) -> Any:
        leadership = self._context.leadership
        before = {tp: leadership[tp].leader_and_isr.isr for tp in changes if tp in leadership}
        written = await correct(self, changes)
        for tp, isr in before.items():
            state = leadership.get(tp)
            if state is not None:
                kept = replace(state.leader_and_isr, isr=isr)
                leadership[tp] = replace(state, leader_and_isr=kept)
        return written

    return write_isr_changes


MUTANT = Mutant(
    name="isr-change-not-remembered",
    property="states-sent-as-written",
    summary="a controller that writes a leader's ISR keeps the ISR before it in memory",
    replacements=(
        Replacement(
            "nemesis.reference.controller.isr_changes",
            "IsrChanges._write_isr_changes",
            _forgets_the_isr,
        ),
    ),
)
