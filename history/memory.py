"""A history of events in memory, without files: simulation and property tests check such histories.

The rows, their order and their row numbers are those that ``nemesis.history.ingest`` would give the same events. So
every check has the same result for both, down to the rows that prove a finding. A test compares the two.

Limits: all rows are one row group and must fit into memory. Missing sources are not detected: the caller states them
as problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from nemesis.history.dependencies import NO_DEPENDENCIES, Dependencies
from nemesis.history.events import Event
from nemesis.history.manifest import Manifest
from nemesis.history.reader import History
from nemesis.history.row_group import Uniform
from nemesis.history.schema import completed, ordered, set_columns
from nemesis.history.statistics import UniformWord
from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_log import Transaction


@dataclass(frozen=True, slots=True)
class MemoryRowGroup:
    """A row group that was never written."""

    table: pa.Table
    first_row: int = 0

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def is_far(self) -> bool:
        return False

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some; copies nothing."""
        return self.table if columns is None else self.table.select(list(columns))

    def known(self) -> MemoryRowGroup:
        """Return itself: nothing has to be looked up."""
        return self

    def uniform(self, column: str) -> Uniform | None:
        """Return the value of all rows if the column is unset in all of them."""
        is_unset = self.table.column(column).null_count == self.rows
        return Uniform(None) if is_unset else None

    def extent(self, column: str) -> tuple[int, int] | None:
        """Return the least and the greatest number of a column of numbers or of lists; None if there are none."""
        numbers = self.table.column(column)
        if pa.types.is_list(numbers.type):
            numbers = pc.list_flatten(numbers)
        least, greatest = pc.min_max(numbers).values()
        return (least.as_py(), greatest.as_py()) if least.is_valid else None

    def dependencies(self) -> Dependencies:
        """Return no dependencies: no statistics are collected in memory."""
        return NO_DEPENDENCIES

    def uniform_list(self, column: str, kind: str) -> list[int] | None:  # noqa: ARG002
        """Return None: no statistics are collected in memory."""
        return None

    def words(self, column: str) -> list[UniformWord] | None:  # noqa: ARG002
        """Return None: no statistics are collected in memory."""
        return None


def history_of(
    events: Iterable[Event],
    transactions: Iterable[Transaction] = (),
    problems: Iterable[str] = (),
) -> History:
    """Return the history of these events, in any order, and of ZooKeeper's committed transactions, in zxid order.

    ``problems``: what is known to be wrong with the sources, a sentence each; each makes the verdict ``unknown``
    unless it is ``invalid``.
    """
    rows = completed(ordered(set_columns([*events, *ZnodeEvents().events(transactions)])))
    manifest = Manifest(events=rows.num_rows, files=[], problems=list(problems))
    return History(manifest, [MemoryRowGroup(rows)] if rows.num_rows else [])
