"""The shapes of a check, and how an engine runs them.

A check names the kinds of events and the columns it needs; an engine reads the history once for all
checks together and hands each its own rows. A check never sees a segment without rows, and one
whose kinds never occur is ``unknown`` without being asked: who saw nothing has proved nothing.

* ``Fold``: ``reduce(segment) -> summary``, ``combine(a, b)``, ``finish(summary)``. Segments are
  reduced in any order, on any machine; summaries are combined in history order, and ``combine``
  must be associative.
* ``Scan``: for state in which the last value wins (a log end offset, an ISR). ``state(segment)``
  says what a segment leaves behind; ``join(a, b)`` chains two of those; then ``reduce(segment,
  carry)`` evaluates the segment, knowing the state before its first row. Two passes, both parallel,
  even inside one partition. The second pass is only for segments whose ``shortcut(state, carry)``
  returns ``None``: a state may hold a proof that all is well.
* ``Grouped``: ``check(key, segment)`` sees all events of one key together, wherever they stand in
  the history. For what is clearer as one walk over one partition or one process. A key's events
  must fit into memory.
* ``PartitionedCheck``: a ``Grouped`` that can also judge a key piece by piece, for keys of any size, and says the
  same then. ``divide(key, groups)`` asks for tasks, round after round, until it has the summary.
* ``GlobalCheck``: ``part(segment)`` keeps what it needs of each row group, ``judge(parts)`` sees all of
  that, in history order, in one task. One pass, nothing travels but the results. For vectorised
  checks of what has no partitions (transactions, registers by the million). The parts must fit into
  memory.

Rows come in the order of ``nemesis.history.schema``: first what concerns no topic, then topic by topic,
partition by partition; inside each, ZooKeeper's rows by zxid, then all others by time. Summaries
are pickled between processes: plain data, small, row numbers instead of events.

One check may decide several properties: ``properties`` returns them, and the check returns a result for
each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from nemesis.checkers.framework.model import Finding, Result, Verdict, combine
from nemesis.checkers.framework.property import Check, Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.history.row_group import RowGroup

Summary = TypeVar("Summary")
State = TypeVar("State")
Part = TypeVar("Part")
Results = Result | Sequence[Result]

MAX_FINDINGS = 20
"""Findings listed per property; the others are only counted."""
MAX_UNLISTED = 5_000
"""Further findings that are kept, because known behaviour is tested finding by finding."""

WORST_FIRST = (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID)


class Fold(Check, Generic[Summary]):
    @abstractmethod
    def reduce(self, segment: Segment) -> Summary:
        """Summarise consecutive rows. The segment has at least one row, all of ``kinds``."""

    @abstractmethod
    def combine(self, a: Summary, b: Summary) -> Summary:
        """Join the summaries of two neighbouring segments, ``a`` before ``b``. Associative; may
        reuse ``a``.
        """

    @abstractmethod
    def finish(self, summary: Summary) -> Results:
        """Turn the summary of the whole history into results."""


class Scan(Check, Generic[State, Summary]):
    @abstractmethod
    def state(self, segment: Segment) -> State:
        """What these rows leave behind for those that follow."""

    @abstractmethod
    def join(self, a: State, b: State) -> State:
        """What two neighbouring segments leave behind, ``a`` before ``b``. Associative; changes
        neither.
        """

    @abstractmethod
    def reduce(self, segment: Segment, carry: State | None) -> Summary:
        """Evaluate rows, given the joined state of everything before them (``None``: nothing is
        before them).
        """

    def shortcut(self, state: State, carry: State | None) -> Summary | None:  # noqa: ARG002
        """Return what ``reduce`` would return for the rows that leave this state, if state and carry
        decide it; ``None`` if the rows themselves are needed.
        """
        return None

    @abstractmethod
    def combine(self, a: Summary, b: Summary) -> Summary:
        """As ``Fold.combine``."""

    @abstractmethod
    def finish(self, summary: Summary) -> Results:
        """As ``Fold.finish``."""


class Grouped(Check, Generic[Summary]):
    keys: ClassVar[tuple[str, ...]]
    """The columns that make the key, e.g. ``("topic", "partition")`` or ``("process",)``."""

    @abstractmethod
    def check(self, key: Key, segment: Segment) -> Summary:
        """Evaluate all rows of one key, in history order. An unset key column is ``None``."""

    @abstractmethod
    def finish(self, summaries: list[tuple[Key, Summary]]) -> Results:
        """Turn the summaries of all keys, ordered by each key's first row, into results."""


Task = Callable[[], Any]
"""Work for one task; picklable, and so is what it returns."""
Rounds = Generator[list[Task], list[Any], Summary]
"""Yields the tasks of a round, is sent their answers in the same order, returns a summary."""


class PartitionedCheck(Grouped[Summary]):
    large: ClassVar[int]
    """Keys of more rows than this are divided; for smaller ones one walk is faster."""

    @abstractmethod
    def divide(self, key: Key, groups: Sequence[RowGroup]) -> Rounds[Summary]:
        """Come to what ``check`` would say of this key, whose rows these row groups hold (others, too), in tasks none
        of which holds all of its rows.
        """


class GlobalCheck(Check, Generic[Part]):
    @abstractmethod
    def part(self, segment: Segment) -> Part:
        """What is needed of consecutive rows; the segment itself is forgotten afterwards."""

    @abstractmethod
    def judge(self, parts: list[Part]) -> Results:
        """Turn the parts, in history order and at least one, into results. May take them out of the list."""


def conclude(
    decided: Property,
    *,
    checked: int,
    findings: Iterable[Finding] = (),
    finding_count: int | None = None,
    numbers: dict[str, float] | None = None,
) -> Result:
    """Return the result of one property: the worst verdict of its findings, else ``valid``.

    Nothing checked and nothing found is ``unknown``. Lists the first ``MAX_FINDINGS`` of the worst
    kind first; ``finding_count`` is for checks that counted more findings than they kept.
    """
    sorted_findings = sorted(findings, key=lambda finding: WORST_FIRST.index(finding.verdict))
    count = len(sorted_findings) if finding_count is None else finding_count
    assert count >= len(sorted_findings), (
        f"{decided.name} counted {count} findings and tells {len(sorted_findings)}"
    )
    verdicts = [finding.verdict for finding in sorted_findings]
    if checked > 0:
        verdicts.append(Verdict.VALID)
    return Result(
        property=decided.name,
        verdict=combine(verdicts),
        checked=checked,
        unit=decided.unit,
        findings=tuple(sorted_findings[:MAX_FINDINGS]),
        finding_count=count,
        unlisted=tuple(sorted_findings[MAX_FINDINGS:][:MAX_UNLISTED]),
        numbers=numbers or {},
    )
