"""What zones found, as findings: which value, which two zones, the contradiction step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable.object_operations import Operations
from nemesis.checkers.linearizable.phrases import key_name, rows, value_name, when
from nemesis.checkers.linearizable.register_zones import (
    READ,
    Conflicts,
    Reads,
    Values,
    conflicts,
    reads,
)


@dataclass(frozen=True, slots=True)
class ZoneFindings:
    """The first findings of each kind, and how many there are of all."""

    findings: list[Finding]
    count: int


def findings(name: str, operations: Operations, values: Values) -> ZoneFindings:
    """Judge registers whose values are written once; operations are reads (0) and writes (1)."""
    if not len(operations):
        return ZoneFindings([], 0)
    sorted_reads = reads(operations, values)
    meeting = conflicts(operations, values, sorted_reads.possible)
    telling = _Telling(name, operations, values)
    listed = chain(telling.reads(sorted_reads), telling.conflicts(meeting, sorted_reads))
    bad = (sorted_reads.unwritten, sorted_reads.of_failed, sorted_reads.too_early, meeting.count)
    return ZoneFindings(list(listed), sum(map(len, bad)))


@dataclass(frozen=True, slots=True)
class _ReadsOfValues:
    """Positions of reads, and the ids of what they read."""

    ids: Numbers
    positions: Numbers


@dataclass(frozen=True, slots=True)
class _Telling:
    name: str
    operations: Operations
    values: Values

    def reads(self, sorted_reads: Reads) -> Iterator[Finding]:
        """The reads that are wrong by themselves, the first of each kind."""
        for position in self._first(sorted_reads.unwritten):
            sentence = f"{self._key(position)} was read as {self._value(position)}, which nobody had written."
            yield self._finding(position, sentence, [], position)
        for position in self._first(sorted_reads.of_failed):
            write = int(self.values.failed_by[self.values.ids[position]])
            sentence = f"{self._key(position)} was read as {self._value(position)}, whose write certainly failed."
            yield self._finding(position, sentence, [], write, position)
        for position in self._first(sorted_reads.too_early):
            write = int(self.values.written_by[self.values.ids[position]])
            key, value = self._key(position), self._value(position)
            sentence = f"{key} was read as {value} before the write of {value} began."
            steps = [
                self._said(position),
                self._said(write),
                "A value cannot be read before it is written.",
            ]
            yield self._finding(position, sentence, steps, position, write)

    def conflicts(self, conflicts: Conflicts, sorted_reads: Reads) -> Iterator[Finding]:
        """Two values that exclude each other, the first of them."""
        if not len(conflicts.count):
            return
        possible = _ReadsOfValues(self.values.ids[sorted_reads.possible], sorted_reads.possible)
        for throughout, between, count in islice(
            zip(
                *(
                    column.tolist()
                    for column in (conflicts.throughout, conflicts.between, conflicts.count)
                ),
                strict=True,
            ),
            MAX_FINDINGS,
        ):
            yield self._conflict(throughout, between, count, possible)

    def _conflict(
        self, throughout: int, between: int, count: int, possible: _ReadsOfValues
    ) -> Finding:
        ended, began = self._ends(throughout, possible)
        other_ended, other_began = self._ends(between, possible)
        initial = value_name(self.values.initial)
        value = initial if self.values.is_initial[throughout] else self._value(began)
        other, key = self._value(other_began), self._key(began)
        of_operations = self.operations
        low = None if ended is None else int(of_operations.finish[ended])
        high = int(of_operations.start[began])
        since = "the beginning" if low is None else f"{low:,} ns"
        if ended is None:
            steps = [f"{initial} is the value before all writes."]
        else:
            steps = [f"{self._said(ended)}: {value} was current by {low:,} ns."]
        steps.append(f"{self._said(began)}: {value} was current at {high:,} ns or later.")
        again = f"{initial} does not come back" if ended is None else f"{value} was written once"
        steps.append(f"{again}, so no other value was current from {since} to {high:,} ns.")
        assert other_ended is not None
        if other_ended == other_began:
            steps.append(f"{self._said(other_ended)}: {other} was current at some moment of that.")
        else:
            steps += [f"{self._said(position)}." for position in (other_ended, other_began)]
            first, last = (
                int(of_operations.finish[other_ended]),
                int(of_operations.start[other_began]),
            )
            shared = (
                f"from {first:,} ns to {last:,} ns"
                if first < last
                else f"at some moment from {last:,} ns to {first:,} ns"
            )
            steps.append(f"So {other} was current {shared}.")
        steps.append("Both cannot be current at once.")
        sentence = (
            f"{key} had value {value} from {since} to {high:,} ns, as an operation before and one after show, "
            f"yet value {other} must have been current in between"
        )
        sentence += "." if count == 1 else f", and {count - 1} other values."
        return self._finding(began, sentence, steps, ended, began, other_ended, other_began)

    def _ends(self, value: int, possible: _ReadsOfValues) -> tuple[int | None, int]:
        """The operations of a value that end first and that start last; of nil none ends first."""
        of_value = possible.positions[possible.ids == value]
        write = int(self.values.written_by[value])
        if write >= 0:
            of_value = np.append(of_value, write)
        row = self.operations.completed[of_value]
        finish, start = self.operations.finish[of_value], self.operations.start[of_value]
        ended = of_value[np.lexsort((row, finish))[0]]
        began = of_value[np.lexsort((row, -start))[0]]
        return (None if self.values.is_initial[value] else int(ended)), int(began)

    def _first(self, positions: Numbers) -> list[int]:
        permutation = np.argsort(self.operations.completed[positions], kind="stable")[:MAX_FINDINGS]
        first: list[int] = positions[permutation].tolist()
        return first

    def _key(self, position: int) -> str:
        return key_name(int(self.operations.key[position]))

    def _value(self, position: int) -> str:
        return value_name(int(self.operations.value[position]))

    def _said(self, position: int) -> str:
        operation_name = "read" if self.operations.f[position] == READ else "write"
        return f"{operation_name} {self._value(position)} was under way {when(self.operations, position)}"

    def _finding(self, about: int, sentence: str, steps: list[str], *proof: int | None) -> Finding:
        shown = rows(self.operations, *proof)
        return finding(self.name, self._key(about), sentence, *shown, steps=steps)
