"""Read-modify-write: transactions that read a version of a key and then wrote the key.

In any serial order the second of two such transactions would have read what the first wrote. So two that read the same
version have lost an update, for every order of versions (``lost-update``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.transactions import READ, Bytes, Mask, MicroOperations
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled


@dataclass(frozen=True, slots=True)
class Updates:
    """The last writes of transactions that had begun with a read of the key; one entry each."""

    read: Numbers
    write: Numbers
    """A number of a write."""
    first: Numbers
    """The first write of those that are based on the same version: itself, unless an update is lost."""
    base: Numbers
    """For each write what its transaction began with on this key: a read, or −1."""
    successor: Numbers
    """For each version the first write that is based on it, −1 without one."""

    @classmethod
    def of(
        cls,
        micro: MicroOperations,
        writes: Writes,
        own: Mask,
        version: Numbers,
        versions: int,
    ) -> Updates:
        """For each micro-operation, ``own``: whether what it read last is its own transaction's; ``version``: which
        version it read, a number below ``versions``, −1 if that is not known.
        """
        base = _bases(writes.micro, micro.code, micro.previous)
        chosen = np.flatnonzero((base >= 0) & writes.is_last)
        chosen = chosen[version[base[chosen]] >= 0]
        chosen = chosen[~own[base[chosen]]]
        read = base[chosen]
        successor = np.full(versions, -1, dtype=np.int64)
        successor[version[read][::-1]] = chosen[::-1]
        return cls(read, chosen, successor[version[read]], base, successor)

    def lost(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return (a read, its write, another read, its write) for each update that lost another one's."""
        clashing = np.flatnonzero(self.first != self.write)
        first = self.first[clashing]
        return self.base[first], first, self.read[clashing], self.write[clashing]


def register_versions(
    micro: MicroOperations, writes: Writes, last_read: Numbers
) -> tuple[Numbers, int]:
    """Return a number for what each read of a register returned (−1: not known), and a bound of these numbers."""
    nil = len(writes) + micro.key
    version = np.where(last_read >= 0, last_read, np.where(last_read == NOTHING, nil, -1))
    return version, len(writes) + len(micro.keys)


def list_versions(micro: MicroOperations, first: Numbers, is_known: Mask) -> tuple[Numbers, int]:
    """As ``register_versions``, for lists: a place in the order of the key, the empty list included."""
    version = np.where(is_known, first[micro.key] + micro.key + micro.count, -1)
    return version, int(first[-1]) + len(micro.keys) + 1


@compiled
def _bases(write: Numbers, code: Bytes, previous: Numbers) -> Numbers:
    base = np.full(len(write), -1, np.int64)
    for n in range(len(write)):
        i = write[n]
        while previous[i] >= 0:
            i = previous[i]
        if code[i] == READ:
            base[n] = i
    return base
