"""A static member that comes back during a rebalance gets the member id of its former process (KAFKA-8500).

Both processes are the same member from then on: neither is fenced, and both own what the generation assigns to it.

Must be caught by: fenced-member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

_REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")


def _in_stable_groups_only(correct: Callable[..., None]) -> Callable[..., None]:
    def replace(
        self: Any, group: Any, request: Any, old_member_id: str, member_id: str, callback: Any
    ) -> None:
        if group.state.name not in _REBALANCING:
            correct(self, group, request, old_member_id, member_id, callback)
            return
        member = group.members[old_member_id]
        timeouts = request.rebalance_timeout_ms, request.session_timeout_ms
        group.update_member(member, request.protocols, *timeouts, callback)
        self._rebalances.heartbeats.schedule_next(group, member)
        self._rebalances.maybe_prepare(group)

    return replace


MUTANT = Mutant(
    name="static-member-doubled",
    property="fenced-member",
    summary="a static member that comes back during a rebalance keeps its former member id (KAFKA-8500)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_joins",
            "GroupJoins._replace_static_member",
            _in_stable_groups_only,
        ),
    ),
    scenario="groups",
)
"""The bug."""
