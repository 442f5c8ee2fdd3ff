"""A stretch of a partition's offsets, looked at together with the row groups that tell of it, each of them read once.

Surveys and cells read the same columns, and what a send has put into the log is read again in row groups that lie far
behind. But where offsets lie a file's statistics tell beforehand, more or less: so a task is given the row groups that
probably tell of a cell, surveys them, and puts into the cell what they know.

It is no more than a guess. The surveys say afterwards which row groups tell of a cell indeed; a cell of which others
tell as well, or of which more must be known than could be at the time, is looked at again (``certificate``). Row groups
at the edge of two sections are read in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.log.cells import Cell, CellReport
from nemesis.checkers.log.number_range import Span, wider
from nemesis.checkers.log.offset_cells import CELL_BITS
from nemesis.checkers.log.partition_rows import Source
from nemesis.checkers.log.survey import Survey, survey

MAX_CELLS = 8
"""A row group whose offsets are further apart probably ends one reading of the log and begins another."""
MANY = 1000
"""Offsets that the final reads did not return, of which is asked first whether they should have."""


@dataclass(slots=True)
class Section:
    """Row groups, by their numbers."""

    own: list[int] = field(default_factory=list)
    """Those to be surveyed."""
    others: list[int] = field(default_factory=list)
    """Those that another section surveys."""
    span: Span | None = None
    """The offsets to be looked at."""

    @property
    def members(self) -> list[int]:
        return sorted((*self.own, *self.others))

    def of(self, sources: Sequence[Source]) -> list[Source]:
        """Those of its row groups."""
        return [sources[number] for number in self.members]

    def holds(self, numbers: Iterable[int], extent: Span) -> bool:
        """Whether these row groups are among its own and others, and these offsets in its span."""
        if self.span is None or not self.span[0] <= extent[0] <= extent[1] <= self.span[1]:
            return False
        return set(numbers) <= {*self.own, *self.others}


@dataclass(slots=True)
class SectionResult:
    """What a section has to say."""

    surveys: list[Survey]
    """Of its own row groups, in their order."""
    report: CellReport | None
    """Of its cell, as if the final reads had to have all of it; None if that says too much, or nothing."""
    failed: Numbers
    """The values of failed sends that were held against the cell."""


def sections(sources: Sequence[Source]) -> dict[int | None, Section]:
    """Which row groups probably tell of which cell; by the number of the cell, None for those that belong to none."""
    by_cell: dict[int | None, Section] = {}
    for number, source in enumerate(sources):
        span = _offsets(source)
        if span is None:
            by_cell.setdefault(None, Section()).own.append(number)
            continue
        cells = range(span[0] >> CELL_BITS, (span[1] >> CELL_BITS) + 1)
        for index, cell in enumerate(cells if len(cells) <= MAX_CELLS else (cells[0], cells[-1])):
            section = by_cell.setdefault(cell, Section())
            (section.others if index else section.own).append(number)
            first, last = cell << CELL_BITS, (cell + 1 << CELL_BITS) - 1
            section.span = wider(section.span, (max(span[0], first), min(span[1], last)))
    return by_cell


def _offsets(source: Source) -> Span | None:
    """Where a row group's offsets are, if that is known."""
    known_span: Span | None = None
    for column in ("offset", "offsets"):
        span = source.group.known().extent(column)
        if span is not None:
            known_span = wider(known_span, (max(0, span[0]), max(0, span[1])))
    return known_span


def look_through(
    section: Section, sources: Sequence[Source], columns: tuple[str, ...], zone_bits: int
) -> SectionResult:
    """Survey the row groups of a section, whose ``sources`` are given, and look at its cell."""
    cell = None if section.span is None else Cell(*section.span)
    surveys: list[Survey] = []
    failed: list[Numbers] = [np.zeros(0, dtype=np.int64)]
    for number, source in zip(section.members, sources, strict=True):
        surveyed, records = survey(source, columns)
        if number in section.own:
            surveys.append(surveyed)
        failed.append(surveyed.failed)
        if records is None:
            cell = None
        elif cell is not None:
            cell.put(records)
    known = np.unique(np.concatenate(failed))
    if cell is None or len(cell.unread(0)) > MANY:
        return SectionResult(surveys, None, known)
    return SectionResult(surveys, cell.report(known, 0, zone_bits), known)
