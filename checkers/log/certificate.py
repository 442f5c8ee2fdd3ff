"""A partition of any size: a certificate that all is well, and the walk only where it is not.

The idea: nearly all of a large partition is in order, and to see that takes a few operations on columns, in stretches
that know nothing of each other; to tell what is wrong takes a walk, but over little. In rounds of tasks:

1. ``sections``: of each million offsets the row groups that tell of them. ``survey`` of each row group: order in time,
   and where its offsets and values lie. ``cells``: which value stands where, acknowledged, read, read at the end.
   ``chain`` joins the surveys.
2. the walk of each row group that is out of order, given the state before it. And cells that were not seen as a whole.
3. ``value_ranges``: values that may stand in several cells.
4. ``suspect_operations``: the operations that touch an offset or a value with which something is wrong, if there is
   one.

They are walked here, as a small partition is, so findings, their order, and what was checked are the same. Memory: one
row group and one cell in a task; of the partition, its suspects.

What it does not speak of, and is walked as a whole: several lives of a topic, compacted logs, histories without final
reads, sends under acks 0 or 1, asynchronous producers with falling offsets, offsets that lie far apart, and operations
that complete otherwise than they were invoked or have no number.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nemesis.checkers.framework.fold import Task
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.log.cells import CellReport, Piece, look
from nemesis.checkers.log.chain import Ordered, chain, holding, walked
from nemesis.checkers.log.gaps import Gaps, joined_markers
from nemesis.checkers.log.high_watermarks import followed_leaders, is_traced
from nemesis.checkers.log.number_range import Span, has_any, meet, wider
from nemesis.checkers.log.offset_cells import CELL_BITS
from nemesis.checkers.log.partition_operations import Operations, gather
from nemesis.checkers.log.partition_rows import Source
from nemesis.checkers.log.report import Counts, Disorder, PartitionReport, judge
from nemesis.checkers.log.sections import Section, SectionResult, look_through, sections
from nemesis.checkers.log.survey import Survey
from nemesis.checkers.log.suspect_operations import touching
from nemesis.checkers.log.topic_incarnations import is_single_incarnation
from nemesis.checkers.log.trimmed import Trimmed, joined
from nemesis.checkers.log.value_ranges import overlaps, repeated
from nemesis.history.events import Kind

SPARE_CELLS = 64
"""Cells that a partition may have beyond four times those that its sends would fill."""


def certify(
    tp: str, sources: Sequence[Source], columns: Sequence[str]
) -> Generator[list[Task], list[Any], PartitionReport | None]:
    """Judge a partition in rounds of tasks; None if it must be walked as a whole."""
    guessed = sections(sources)
    zone_bits = _zone_bits(sources, len(guessed))
    section_results: list[SectionResult] = yield [
        partial(look_through, section, section.of(sources), tuple(columns), zone_bits)
        for section in guessed.values()
    ]
    surveys = _in_order(guessed.values(), section_results)
    rare_rows = [survey.rare_rows for survey in surveys if survey.rare_rows is not None]
    finals = [survey.final_position for survey in surveys if survey.final_position is not None]
    if not rare_rows or not finals or _far_apart(surveys):
        return None
    known, _ = joined(rare_rows)
    marks_known = _marks_known(surveys, known)
    traced = is_traced(known) or _is_stated(surveys)
    gaps = Gaps.of(joined_markers(survey.markers for survey in surveys))
    chained = chain(surveys, gaps, marks_known=marks_known)
    ids = {topic_id for survey in surveys for topic_id in survey.topic_ids}
    if chained.irregular is not None or not is_single_incarnation(known, ids):
        return None
    if chained.suspects and not traced and _may_have_unknown_markers(sources):
        return None  # whether a gap may be markers takes all sends to say
    operations = gather(tp, known)
    walks: list[Task] = [
        partial(
            walked,
            tp,
            sources[number],
            sources[number + 1] if number + 1 < len(sources) else None,
            before,
            holding(before.rows(), sources),
            operations.starts,
            gaps,
            marks_known=marks_known,
            is_traced=traced,
        )
        for number, before in chained.suspects.items()
    ]
    failed = np.unique(np.concatenate([survey.failed for survey in surveys]))
    layout = Layout.of(sources, surveys)
    reports = layout.proved(guessed, section_results, failed)
    looks = layout.looks(reports, failed, _floor(operations, finals), zone_bits)
    answers = yield [*walks, *looks.values()]
    out_of_order: list[Ordered] = answers[: len(walks)]
    reports |= zip(looks, answers[len(walks) :], strict=True)
    pairs = yield [
        partial(repeated, layout.meeting(overlap), overlap)
        for overlap in overlaps(reports.values())
    ]
    suspects = np.concatenate([*(report.suspects for report in reports.values()), *pairs])
    touched = yield from _touching(sources, surveys, suspects, columns)
    rows, ends = joined([*rare_rows, *touched])
    operations = gather(tp, rows, ends=ends)
    operations.is_traced, operations.gaps = traced, gaps
    report = PartitionReport.of(known)
    counts = _counts(surveys, reports.values(), operations)
    judge(operations, _disorder(out_of_order), counts, report, was_deleted=False)
    return report


def _may_have_unknown_markers(sources: Sequence[Source]) -> bool:
    """Whether transactions wrote, and no broker has traced a marker."""
    has_transactions = False
    for source in sources:
        rows = source.read("producer_id")
        if rows.segment.is_kind(Kind.MARKER_APPENDED).any():
            return False
        producers = rows.segment.numbers("producer_id")[rows.are_sends]
        has_transactions |= bool((producers >= 0).any())
    return has_transactions


def _in_order(guessed: Iterable[Section], section_results: Sequence[SectionResult]) -> list[Survey]:
    """The surveys in the order of their row groups."""
    surveys = {
        number: survey
        for section, result in zip(guessed, section_results, strict=True)
        for number, survey in zip(section.own, result.surveys, strict=True)
    }
    return [surveys[number] for number in sorted(surveys)]


def _far_apart(surveys: Sequence[Survey]) -> bool:
    cells_met = {cell for survey in surveys for cell in survey.cells}
    sends = sum(survey.acknowledged for survey in surveys)
    return len(cells_met) > SPARE_CELLS + 4 * (sends >> CELL_BITS)


def _is_stated(surveys: Sequence[Survey]) -> bool:
    return any(survey.highest is not None for survey in surveys)


def _marks_known(surveys: Sequence[Survey], known: Segment) -> bool:
    """Whether leaders have traced their high watermarks, and none of them is silent."""
    reporting_nodes = {node for survey in surveys for node in survey.stated_by}
    return _is_stated(surveys) and followed_leaders(known) <= reporting_nodes


def _floor(operations: Operations, finals: list[int]) -> int:
    """From here on, what the final reads did not return is a suspect."""
    ends = [read.position for read in operations.final_reads[-1:]]
    return min(operations.log_start, *finals, *ends)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which row groups contain which cells."""

    pieces: list[Piece]
    """One for each row group."""
    values: list[Span | None]
    """Where the values of each are."""
    extents: dict[int, Span]
    """Of each cell, the smallest offset and the largest."""
    row_groups: dict[int, list[int]]
    """Of each cell, the numbers of the row groups."""

    @classmethod
    def of(cls, sources: Sequence[Source], surveys: Sequence[Survey]) -> Layout:
        extents: dict[int, Span] = {}
        row_groups: dict[int, list[int]] = {}
        for number, survey in enumerate(surveys):
            for cell, extent in survey.cells.items():
                extents[cell] = wider(extents.get(cell), extent)
                row_groups.setdefault(cell, []).append(number)
        pieces = [
            Piece(source, survey.runs_on, survey.plain)
            for source, survey in zip(sources, surveys, strict=True)
        ]
        values = [survey.values for survey in surveys]
        return cls(pieces, values, dict(sorted(extents.items())), row_groups)

    def proved(
        self,
        guessed: Mapping[int | None, Section],
        section_results: Sequence[SectionResult],
        failed: Numbers,
    ) -> dict[int, CellReport]:
        """The reports of sections in which all was at hand that there is to know of a cell; ``failed`` as in ``look``,
        sorted.
        """
        reports: dict[int, CellReport] = {}
        for (cell, section), result in zip(guessed.items(), section_results, strict=True):
            if cell not in self.extents or result.report is None:
                continue
            elsewhere = np.setdiff1d(failed, result.failed, assume_unique=True)
            is_whole = section.holds(self.row_groups[cell], self.extents[cell])
            if is_whole and not any(
                has_any(elsewhere, zone) for zone in result.report.zones.values()
            ):
                reports[cell] = result.report
        return reports

    def looks(
        self, known: Container[int], failed: Numbers, floor: int, zone_bits: int
    ) -> dict[int, Task]:
        """The tasks that look at the cells of which there is no report yet."""
        return {
            cell: partial(
                look,
                [self.pieces[number] for number in self.row_groups[cell]],
                *extent,
                failed=failed,
                floor=floor,
                zone_bits=zone_bits,
            )
            for cell, extent in self.extents.items()
            if cell not in known
        }

    def meeting(self, span: Span) -> list[Piece]:
        """The row groups that have values there."""
        return [
            piece
            for piece, values in zip(self.pieces, self.values, strict=True)
            if values is not None and meet(values, span)
        ]


def _zone_bits(sources: Sequence[Source], cell_count: int) -> int:
    """How wide zones of values are, so that there are about as many as cells."""
    known = [
        span for source in sources if (span := source.group.known().extent("value")) is not None
    ]
    if not known:
        return CELL_BITS
    spread = max(high for _, high in known) - min(low for low, _ in known)
    return min(62, max(CELL_BITS, spread.bit_length() - cell_count.bit_length()))


def _touching(
    sources: Sequence[Source],
    surveys: Sequence[Survey],
    suspects: Numbers,
    columns: Sequence[str],
) -> Generator[list[Task], list[Trimmed], list[Trimmed]]:
    if not len(suspects):
        return []
    offsets, values = np.unique(suspects[:, 0]), np.unique(suspects[:, 1])
    tasks: list[Task] = [
        partial(touching, source, offsets, values, columns)
        for source, survey in zip(sources, surveys, strict=True)
        if has_any(values, survey.values) or has_any(offsets, survey.read)
    ]
    return (yield tasks)


def _disorder(walks: Sequence[Ordered]) -> Disorder:
    """All of it, as one walk would have found it."""
    sends = sorted((send for part in walks for send in part.sends), key=lambda send: send[0])
    return Disorder(
        [poll for part in walks for poll in part.polls],
        [read for part in walks for read in part.above]
        + [read for part in walks for read in part.above_all],
        [send for _, send in sends],
    )


def _counts(
    surveys: Sequence[Survey], reports: Collection[CellReport], operations: Operations
) -> Counts:
    """Offsets that are no suspects have a value each, which no other has; the suspects' are counted apart."""
    committed = sum(report.committed for report in reports)
    read = sum(report.read for report in reports)
    held = [(offset, value) for offset, value, _ in operations.positions]
    polled = [
        record
        for poll in operations.polls
        for record in zip(poll.offsets, poll.values, strict=True)
    ]
    return Counts(
        committed=committed + _values_beyond_offsets(held),
        read=read + _values_beyond_offsets(polled),
        acknowledged=sum(survey.acknowledged for survey in surveys),
        polls=sum(survey.polls for survey in surveys),
    )


def _values_beyond_offsets(pairs: list[tuple[int, int]]) -> int:
    return len({value for _, value in pairs}) - len({offset for offset, _ in pairs})
