"""What a row group has to say of suspects: the operations that touch them, for the walk that tells what is wrong.

All records with a suspect value are kept, with the sends of these values, and the polls that went over an offset where
one stands. So the walk sees of a suspect everything that a walk of the whole partition would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.log.partition_rows import Lists, Role, Source
from nemesis.checkers.log.trimmed import Trimmed, is_in, trimmed


def touching(source: Source, offsets: Numbers, values: Numbers, columns: Sequence[str]) -> Trimmed:
    """The sends of these values, and the polls that returned one of them or went over one of these offsets; both are
    sorted.
    """
    rows = source.read()
    segment, polls = rows.segment, rows.are(Role.POLL_OK)
    held = Lists.of(segment, "values")
    read = Lists.of_offsets(segment, runs_on=rows.runs_on)
    positions, ends = segment.numbers("offset"), segment.numbers("offset").copy()
    full = np.flatnonzero(read.lengths)
    if len(full):
        ends[full] = np.maximum.reduceat(read.flat, read.starts[full]) + 1
    went_over = np.searchsorted(offsets, ends) > np.searchsorted(offsets, positions)
    returned = np.bincount(held.owners[is_in(held.flat, values)], minlength=len(segment)) > 0
    sends = rows.are_sends & is_in(segment.numbers("value"), values)
    return trimmed(
        segment, sends | (polls & (went_over | returned)), columns, values, runs_on=rows.runs_on
    )
