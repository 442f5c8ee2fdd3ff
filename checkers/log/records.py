"""What one row group tells of offsets and values: which sends were acknowledged where, and what polls returned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers


@dataclass(frozen=True, slots=True)
class Records:
    sent: Mask
    """Of all rows, those that acknowledge a send."""
    offsets: Numbers
    """Of all rows, as their values; set where a send is acknowledged."""
    values: Numbers
    positions: Numbers
    """Of polls that returned anything, where they began."""
    lengths: Numbers
    """How many records they returned."""
    final: Mask
    """Whether a final reader polled."""
    read: Numbers
    """The values that they returned, one poll after the other."""
    read_offsets: Numbers | None
    """The offsets of these; None: each poll returned all offsets from its position on."""

    @classmethod
    def of(
        cls,
        sends: tuple[Mask, Numbers, Numbers],
        lengths: Numbers,
        final: Mask,
        read: Numbers,
        read_offsets: Numbers | None,
    ) -> Records:
        """``sends`` are the first three; ``lengths`` and ``final`` are of all rows."""
        polls = np.flatnonzero(lengths)
        return cls(
            *sends,
            sends[1][polls],
            lengths[polls].astype(np.int64),
            final[polls],
            read,
            read_offsets,
        )

    def where_read(self) -> Numbers:
        """The offset of each record that was read."""
        if self.read_offsets is not None:
            return self.read_offsets
        return offsets_from(self.positions, self.lengths)

    def between(self, low: int, high: int) -> Numbers:
        """The distinct (offset, value) of what has a value from ``low`` to ``high``, both included."""
        sent, value = self.offsets[self.sent], self.values[self.sent]
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for offsets, held in ((sent, value), (self.where_read(), self.read)):
            chosen = (held >= low) & (held <= high)
            pairs.append(np.column_stack((offsets[chosen], held[chosen])))
        return np.unique(np.concatenate(pairs), axis=0)


def offsets_from(positions: Numbers, lengths: Numbers) -> Numbers:
    """All numbers of lists that begin there and run on."""
    offsets = np.repeat(positions - (np.cumsum(lengths) - lengths), lengths)
    offsets += np.arange(len(offsets))
    return offsets
