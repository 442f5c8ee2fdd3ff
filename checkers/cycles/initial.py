"""The initial value of registers, where it is not nil.

The analysis represents a read of the initial version as a read of nothing. So a read of a stated initial value becomes
a read of nothing, and a read of nil becomes a read of ``OF_NIL``, which no transaction writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nemesis.checkers.cycles.transactions import READ, UNKNOWN, Mask, MicroOperations, Transactions
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.initial_values import NIL, Changes, Observed, suggested

OF_NIL: Final = -1
"""Nil as an element, which it is where another initial value is stated. Values are never negative."""


@dataclass(frozen=True, slots=True)
class InitialValue:
    """The value that can only be the initial one."""

    value: int
    sentence: str
    read: int
    """A micro-operation that shows it."""


def concluded(
    txns: Transactions, micro: MicroOperations, *, has_real_time: bool
) -> InitialValue | None:
    """Return the initial value that reads show which no write can have preceded.

    Without real time only writes of the same transaction are known to come after a read.
    """
    is_read = (micro.code == READ) & (micro.count > UNKNOWN) & ~_follows_a_write(micro)
    reads = np.flatnonzero(is_read)
    writes = np.flatnonzero(micro.code != READ)
    element = np.append(micro.flat, OF_NIL)[np.minimum(micro.element_start, len(micro.flat))]
    value = np.where(micro.count == 0, NIL, element)
    began = txns.began if has_real_time else np.full(len(txns), UNSET)
    suggestion = suggested(
        Observed(micro.key[reads], value[reads], txns.ended[micro.txn[reads]], micro.txn[reads]),
        Changes(micro.key[writes], value[writes], began[micro.txn[writes]], micro.txn[writes]),
    )
    if suggestion is None:
        return None
    return InitialValue(suggestion.value, suggestion.sentence, int(reads[suggestion.position]))


def with_initial(micro: MicroOperations, initial: int) -> MicroOperations:
    """Return the micro-operations, in which the reads of ``initial`` are reads of nothing."""
    if initial == NIL:
        return micro
    is_read = (micro.code == READ) & (micro.count > UNKNOWN)
    is_one = is_read & (micro.count == 1)
    is_initial = np.zeros(len(micro), dtype=np.bool_)
    is_initial[is_one] = micro.flat[micro.element_start[is_one]] == initial
    is_nil = is_read & (micro.count == 0)
    flat = np.zeros(len(micro.flat) + 1, dtype=micro.flat.dtype)
    flat[:-1], flat[-1] = micro.flat, OF_NIL
    return replace(
        micro,
        flat=flat,
        element_start=np.where(is_nil, len(micro.flat), micro.element_start),
        count=np.where(is_nil, 1, np.where(is_initial, 0, micro.count)),
    )


def _follows_a_write(micro: MicroOperations) -> Mask:
    """For each micro-operation, whether its transaction wrote its key before."""
    follows = np.zeros(len(micro), dtype=np.bool_)
    previous = micro.previous.copy()
    while (previous >= 0).any():
        known = previous >= 0
        follows[known] |= micro.code[previous[known]] != READ
        previous[known] = micro.previous[previous[known]]
    return follows
