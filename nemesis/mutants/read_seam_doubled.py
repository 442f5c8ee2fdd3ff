"""Where a consumer's answer is put together from two reads, the batch at the seam is there twice.

An off-by-one of a reader that goes on from the last offset that it has. ``read_seam_lost`` is its twin.

Must be caught by: nonmonotonic-poll.
"""

from __future__ import annotations

from nemesis.mutants.base import Mutant, Replacement
from nemesis.mutants.read_seam_lost import seam

MUTANT = Mutant(
    name="read-seam-doubled",
    property="nonmonotonic-poll",
    summary="an answer to a consumer that is made of two reads has the batch between them twice",
    replacements=(
        Replacement("nemesis.reference.cluster.partition_reads", "_read", seam(times=2)),
    ),
)
