"""The rows of one partition in one row group, as columns.

Rows are partition-major, so those of one partition are a stretch of the row group. A poll's records are lists; they are
looked at as one flat column of all the lists of the stretch, with the length of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.log.operations import ALL_REPLICAS
from checkers.segment import Mask, Numbers, Segment
from history.events import Kind
from history.reader import RowGroup

UNSET = np.iinfo(np.int64).min
OPERATION_KINDS = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row group has rows of a partition."""

    group: RowGroup
    topic: str
    partition: int
    kinds: frozenset[str]
    """The kinds that count."""

    def read(self) -> Segment:
        """The partition's rows; columns are read when they are asked for. Raises HistoryError."""
        whole = Segment.of(self.group)
        is_here = whole.is_word("topic", {self.topic})
        is_here &= whole.numbers("partition") == self.partition
        is_here &= whole.is_kind(*self.kinds)
        return whole.where(is_here)


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: how long each is (an unset one 0), and what they hold, one after the other."""

    lengths: Numbers
    flat: Numbers
    is_whole: bool
    """Whether each number in them is set."""

    @classmethod
    def of(cls, segment: Segment, name: str) -> Lists:
        column = segment.columns.arrow(name)
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        flat = pc.list_flatten(column)
        is_whole = flat.null_count == 0
        return cls(_numbers(lengths), _numbers(pc.fill_null(flat, UNSET)), is_whole)

    @classmethod
    def of_polls(cls, segment: Segment) -> Lists:
        """The offsets of polls each of which returned all from its position on; needs ``offset`` and ``values``."""
        column = segment.columns.arrow("values")
        lengths = _numbers(pc.fill_null(pc.list_value_length(column), 0))
        first = segment.numbers("offset") - (np.cumsum(lengths) - lengths)
        flat = np.repeat(first, lengths) + np.arange(int(lengths.sum()))
        return cls(lengths, flat, is_whole=True)

    @property
    def fingerprint(self) -> bytes:
        """Equal if the same rows have lists of the same lengths."""
        full = np.flatnonzero(self.lengths)
        return blake2b(np.concatenate((full, self.lengths[full])).tobytes(), digest_size=8).digest()

    @property
    def starts(self) -> Numbers:
        """Where each list begins in ``flat``."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def owners(self) -> Numbers:
        """For each number the position of its list."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def acknowledged(segment: Segment) -> Mask:
    """The completions of sends that the system promised to keep, as they say themselves; needs ``f``, ``acks``,
    ``offset``.
    """
    found: Mask = segment.is_kind(Kind.OK) & segment.is_word("f", {"send"})
    found &= segment.numbers("acks", UNSET) == ALL_REPLICAS
    found &= segment.numbers("offset") >= 0
    return found


def is_operation(segment: Segment, f: str) -> Mask:
    """The invocations and completions of sends, or of polls."""
    return segment.is_kind(*OPERATION_KINDS) & segment.is_word("f", {f})
