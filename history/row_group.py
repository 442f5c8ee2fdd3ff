"""What a row group of a history offers: its rows, and facts about them that cost no reading.

``RowGroup`` and ``Known`` are interfaces. ``nemesis.history.stored_row_group`` implements them for Parquet files,
``nemesis.history.memory`` for events in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from nemesis.history.dependencies import NO_DEPENDENCIES, Dependencies
from nemesis.history.statistics import UniformWord


class RowGroup(Protocol):
    """A stretch of rows that is read at once; picklable, so that it can be sent to Spark tasks."""

    @property
    def first_row(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, all columns or some."""

    def known(self) -> Known:
        """Return the facts that are known without reading the rows."""

    @property
    def is_far(self) -> bool:
        """Whether a read takes long to begin: then it is faster to read all columns together."""


class Known(Protocol):
    """Facts about the rows of a row group, known without reading them."""

    def uniform(self, column: str) -> Uniform | None:
        """Return the value that all rows have in a column, if it is known."""

    def extent(self, column: str) -> tuple[int, int] | None:
        """Return the least and the greatest number of a column of numbers or of lists, if that is known."""

    def uniform_list(self, column: str, kind: str) -> list[int] | None:
        """Return the list that all rows of a kind have in a column, if that is known."""

    def words(self, column: str) -> list[UniformWord] | None:
        """Return the word that the rows of each kind and node have in a column, if it is known."""

    def dependencies(self) -> Dependencies:
        """Return which columns are known to depend on others."""


class Uniform(NamedTuple):
    """The value that all rows of a row group have in a column; ``None``: it is unset in all of them."""

    value: Any


class NothingKnown:
    """Implements ``Known`` for rows about which nothing is known until they are read."""

    def uniform(self, column: str) -> Uniform | None:  # noqa: ARG002
        return None

    def extent(self, column: str) -> tuple[int, int] | None:  # noqa: ARG002
        return None

    def uniform_list(self, column: str, kind: str) -> list[int] | None:  # noqa: ARG002
        return None

    def words(self, column: str) -> list[UniformWord] | None:  # noqa: ARG002
        return None

    def dependencies(self) -> Dependencies:
        return NO_DEPENDENCIES
