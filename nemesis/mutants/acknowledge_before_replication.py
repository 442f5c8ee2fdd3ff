"""A produce with acks=all is acknowledged once the leader has it.

The high watermark is right, but the acknowledgement does not wait for it: a record that only a leader had when
it failed was promised and is gone.

Must be caught by: leader-completeness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _at_once(_correct: Any) -> Callable[[Any, int], tuple[bool, ErrorCode]]:
    def check_enough_replicas_reach_offset(
        self: Any, _required_offset: int
    ) -> tuple[bool, ErrorCode]:
        return True, ErrorCode.none if self.is_leader else ErrorCode.not_leader_or_follower

    return check_enough_replicas_reach_offset


MUTANT = Mutant(
    name="acknowledge-before-replication",
    property="leader-completeness",
    summary="acks=all is answered before the in-sync replicas have the record",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.check_enough_replicas_reach_offset",
            _at_once,
            is_comparable=True,
        ),
    ),
)
