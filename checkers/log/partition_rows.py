"""The rows of one partition in one row group, as columns.

Rows are partition-major, so those of one partition are a stretch of the row group. A poll's records are lists; they are
looked at as one flat column of all the lists of the stretch, with the length of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.checkers.framework.dependencies import translated
from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.log.gaps import MARKER_KINDS
from nemesis.checkers.log.partition_operations import FINAL_READER
from nemesis.checkers.log.topic_incarnations import ALL_REPLICAS
from nemesis.history.events import Kind
from nemesis.history.row_group import RowGroup

UNSET = np.iinfo(np.int64).min
Roles = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row group has rows of a partition."""

    group: RowGroup
    topic: str
    partition: int
    kinds: frozenset[str]
    """The kinds that count."""

    def read(self, *columns: str) -> Rows:
        """The partition's rows. These columns are read at once, others when they are asked for. Raises HistoryError."""
        segment = Segment.of(self.group)
        runs_on = self.group.known().dependencies().offsets_run_on
        known_columns = {"offsets"} if runs_on else set()
        segment.columns.fetch(
            [name for name in ("kind", "f", *columns) if name not in known_columns]
        )
        roles, possible = _roles(segment, self.kinds)
        if self._has_all(segment) and Role.NONE not in possible:
            return Rows(segment, roles, possible, runs_on, are_all=True)
        is_here: Mask = roles != Role.NONE
        if not self._has_all(segment):
            is_here &= segment.numbers("partition") == self.partition
            is_here &= segment.is_word("topic", {self.topic})
        if is_here.all():
            return Rows(segment, roles, possible, runs_on, are_all=True)
        own_rows = segment.take(np.flatnonzero(is_here))
        return Rows(own_rows, roles[is_here], possible, runs_on, are_all=False)

    def _has_all(self, segment: Segment) -> bool:
        """Whether all rows are known to be of this partition."""
        uniform = (segment.columns.uniform(name) for name in ("topic", "partition"))
        return [known and known.value for known in uniform] == [self.topic, self.partition]


class Role(IntEnum):
    """What a row is to a partition's log."""

    NONE = 0
    """Of a kind that does not count."""
    OTHER = 1
    HIGH_WATERMARK = 2
    MARKER = 3
    SEND = 4
    """Invoked; the completions follow, in the order of ``OUTCOMES``."""
    SEND_OK = 5
    SEND_FAIL = 6
    SEND_INFO = 7
    POLL = 8
    POLL_OK = 9
    POLL_FAIL = 10
    POLL_INFO = 11


OUTCOMES = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
_FIRST = {"send": Role.SEND, "poll": Role.POLL}
_OF_BROKERS: dict[str, Role] = {
    Kind.HIGH_WATERMARK: Role.HIGH_WATERMARK,
    **dict.fromkeys(MARKER_KINDS, Role.MARKER),
}
"""The kinds of events that may be as many as operations."""


def _roles(segment: Segment, kinds: frozenset[str]) -> tuple[Roles, frozenset[int]]:
    """The role of each row, and those that there may be, as words go."""
    kind_codes, kind_words = segment.columns.words("kind")
    f_codes, f_words = segment.columns.words("f")
    table = np.zeros((len(kind_words), len(f_words) + 1), dtype=np.int8)
    for i, kind in enumerate(kind_words):
        if kind in kinds:
            table[i] = _OF_BROKERS.get(kind, Role.OTHER)
        for j, f in enumerate(f_words):
            if f in _FIRST and kind in OUTCOMES:
                table[i, 1 + j] = _FIRST[f] + OUTCOMES.index(Kind(kind))
    indices = kind_codes.astype(np.min_scalar_type(-table.size))
    indices *= table.shape[1]
    indices += f_codes
    indices += 1
    possible = table if (f_codes < 0).any() else table[:, 1:]
    roles = translated(indices, table.ravel().tolist()).astype(np.int8, copy=False)
    return roles, frozenset(possible.ravel().tolist())


@dataclass(frozen=True, slots=True)
class Rows:
    """A partition's rows in one row group."""

    segment: Segment
    roles: Roles
    possible: frozenset[int]
    """The roles that there may be."""
    runs_on: bool
    """Whether each poll is known to have returned all offsets from its position on, with a value each."""
    are_all: bool
    """Whether the row group has no others."""

    def are(self, role: Role) -> Mask:
        if role not in self.possible:
            return np.zeros(len(self.roles), dtype=np.bool_)
        mask: Mask = self.roles == role
        return mask

    @property
    def are_sends(self) -> Mask:
        """Whatever became of them."""
        return self._are_between(Role.SEND, Role.SEND_INFO)

    def _are_between(self, first: Role, last: Role) -> Mask:
        mask: Mask = self.roles >= first
        mask &= self.roles <= last
        return mask

    @property
    def are_acknowledged(self) -> Mask:
        """The completions of sends that the system promised to keep, as they say themselves."""
        mask = self.are(Role.SEND_OK)
        mask &= self.segment.numbers("acks", UNSET) == ALL_REPLICAS
        mask &= self.segment.numbers("offset", UNSET) >= 0
        return mask

    @property
    def are_final(self) -> Mask:
        """The rows of final readers."""
        codes, words = self.segment.columns.words("process")
        readers = [word.startswith(FINAL_READER) for word in words]
        if not any(readers):
            return np.zeros(len(self.segment), dtype=np.bool_)
        return np.array([*readers, False], dtype=np.bool_)[codes]


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: how long each is (an unset one 0), and what they hold, one after the other."""

    lengths: Numbers
    flat: Numbers
    is_whole: bool
    """Whether each number in them is set."""

    @classmethod
    def of(cls, segment: Segment, name: str) -> Lists:
        array = _in_one(segment.columns.arrow(name))
        ends = array.offsets.to_numpy()
        lengths = ends[1:] - ends[:-1]
        flat = array.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
        if array.null_count and not _are_set(array, np.flatnonzero(lengths)).all():
            flat = array.flatten()
            lengths = _numbers(pc.fill_null(pc.list_value_length(array), 0))
        is_whole = flat.null_count == 0
        return cls(lengths, _numbers(flat if is_whole else pc.fill_null(flat, UNSET)), is_whole)

    @classmethod
    def of_offsets(cls, segment: Segment, *, runs_on: bool) -> Lists:
        """The offsets of polls; ``runs_on`` as of their ``Rows``."""
        if not runs_on:
            return cls.of(segment, "offsets")
        values = cls.of(segment, "values")
        first = segment.columns.stored("offset")[0] - values.starts
        flat = np.repeat(first, values.lengths) + np.arange(len(values.flat))
        return cls(values.lengths, flat, is_whole=True)

    @property
    def starts(self) -> Numbers:
        """Where each list begins in ``flat``."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def owners(self) -> Numbers:
        """For each number the position of its list."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


def _in_one(column: pa.ChunkedArray) -> pa.ListArray:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _are_set(array: pa.ListArray, indices: Numbers) -> Mask:
    """Which of these lists are set, in an array that has some that are not."""
    bits, indices = np.frombuffer(array.buffers()[0], np.uint8), indices + array.offset
    are_set: Mask = (bits[indices >> 3] >> (indices & 7).astype(np.uint8) & 1).astype(np.bool_)
    return are_set


def _numbers(column: pa.Array) -> Numbers:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def by_process(codes: Numbers) -> Numbers:
    """Positions process by process, in the order of each. Small numbers are sorted in time that does not grow faster
    than they do.
    """
    is_small = not len(codes) or int(codes.max()) < 1 << 15
    return np.argsort(codes.astype(np.int16) if is_small else codes, kind="stable")


def are_plain(segment: Segment) -> Mask:
    """Rows that have an offset and a value."""
    mask: Mask = segment.numbers("offset", UNSET) >= 0
    mask &= segment.numbers("value", UNSET) != UNSET
    return mask
