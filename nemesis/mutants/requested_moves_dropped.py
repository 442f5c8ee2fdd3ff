"""A controller removes ``/admin/reassign_partitions`` and begins none of the moves that it requests.

The operator takes a znode that is gone for moves that are made.

Must be caught by: reassignment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import TopicPartition


def _removes_only(_correct: Any) -> Callable[..., Awaitable[frozenset[TopicPartition]]]:
    async def process_zk_reassignment(reassignments: Any) -> frozenset[TopicPartition]:
        requests = reassignments._zk_client.reassignment  # noqa: SLF001
        if await requests.get_partition_reassignment() is not None:
            fence = reassignments._context.required_fence()  # noqa: SLF001
            await requests.remove_partitions(lambda _tp, _target: True, fence)
        return frozenset()

    return process_zk_reassignment


MUTANT = Mutant(
    name="requested-moves-dropped",
    property="reassignment",
    summary="a controller removes the moves from `/admin/reassign_partitions` and begins none",
    replacements=(
        Replacement(
            "nemesis.reference.controller.partition_reassignments",
            "PartitionReassignments.process_zk_reassignment",
            _removes_only,
        ),
    ),
)
