"""Queues: what is enqueued is dequeued, once.

A *drain* dequeues until the queue is empty. The queue was *empty* at some moment of a successful drain, and of a
successful dequeue without a value.

* **queue-lost**: a value whose enqueue succeeded and that nobody dequeued, although the queue was empty afterwards; or
  one that was enqueued several times before, and dequeued less often. Dequeues of unknown outcome may have taken one
  value each, such drains any number: while they explain all that is missing, it is ``unknown``; so is what was enqueued
  when no operation saw the queue empty afterwards. In a ``FifoQueue`` both are reported and allowed: the order of all
  operations decides.
  Smallest break: enqueue 1 is over; a drain that begins afterwards returns nothing.
* **queue-unexpected**: a value was dequeued that nobody had tried to enqueue by then, or whose enqueue had failed.
  Smallest break: a dequeue returns 1.
* **queue-duplicate**: a value was dequeued more often than enqueues of it can have happened. Reported and allowed to a
  queue that delivers at least once (``TotalQueue``), a finding in one that keeps order (``FifoQueue``).
  Smallest break: enqueue 1; two dequeues return 1.
* **queue-order** (``FifoQueue`` alone): the enqueue of a value was over before that of another one began, and the
  other one's dequeue was over before its own began, or it was not dequeued at all. Judged of values that were
  enqueued and dequeued once, and of those that are still there, where no operation of unknown outcome can have taken
  them. A drain dequeued its values in the order in which it returned them. Queues with dequeues or drains of unknown
  outcome, or with values that were enqueued several times, are searched for an order of all operations
  (``queue_search``), ``unknown`` at the bound.
  Smallest break: enqueue 1, enqueue 2, dequeue 2, one after the other.
* **queue-empty** (``FifoQueue`` alone): a queue was found empty that held one value or another at each moment of that
  operation. Judged of the same values. Smallest break: enqueue 1, dequeue nothing, dequeue 1, one after the other.

Names and meanings are those of Jepsen's ``total-queue``, except that there each value that is not dequeued is lost: it
expects a drain at the end. Where nothing is in doubt, a ``FifoQueue`` without findings is linearizable
(``queue_order``). Limits: all operations fit into memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final

import numpy as np

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.framework.fold import MAX_FINDINGS, Results, conclude
from nemesis.checkers.framework.model import Finding, Result, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.element_findings import (
    ElementFindings,
    ElementProperty,
    WhyUnexpected,
)
from nemesis.checkers.linearizable.elements import NONE, Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck, decided_by_order
from nemesis.checkers.linearizable.object_operations import Operations, in_history_order
from nemesis.checkers.linearizable.queue_order import NeverEmpty, overtaken, overtaken_in_drains
from nemesis.checkers.linearizable.queue_search import MAX_VALUES, SearchedQueues, searched_queues
from nemesis.checkers.linearizable.queue_states import DRAIN, ENQUEUE, FS, QueueStates
from nemesis.history.sources import EventSource

_WHY: Final = WhyUnexpected(
    too_late="before its enqueue began",
    failed="whose enqueue certainly failed",
    absent="which nobody had enqueued",
)


class TotalQueue(ObjectCheck):
    fs = FS
    lists = (FS[DRAIN],)
    duplicate: ClassVar[Verdict] = Verdict.VALID
    remaining: ClassVar[Verdict] = Verdict.UNKNOWN
    """How values count that are not dequeued, and may be in the queue or with dequeues of unknown outcome."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOST, UNEXPECTED, DUPLICATE)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        return self._results(_Telling.of(operations, lists))

    def _results(self, telling: _Telling) -> list[Result]:
        return [
            telling.lost(self.remaining),
            telling.unexpected(),
            telling.duplicate(self.duplicate),
        ]


class FifoQueue(TotalQueue):
    duplicate = Verdict.INVALID
    remaining = Verdict.VALID
    max_values: ClassVar[int] = MAX_VALUES
    """The bound of the search of one queue."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (*super().properties(), QUEUE_ORDER, EMPTY)

    def _results(self, telling: _Telling) -> list[Result]:
        results = super()._results(telling)
        decided = [*results, telling.overtaking(), telling.empty()]
        keys = {
            finding.key
            for result in decided
            for finding in result.findings
            if finding.verdict is Verdict.INVALID
        }
        searched = searched_queues(
            QUEUE_ORDER.name, telling.operations, telling.lists, keys, self.max_values
        )
        ordered = [*results, telling.overtaking(searched), telling.empty(searched)]
        return decided_by_order(
            ordered, telling.operations, telling.operations.f != ENQUEUE, "dequeues"
        )


@dataclass(frozen=True, slots=True)
class _Telling:
    """What became of the values, in results."""

    operations: Operations
    lists: Listed
    states: QueueStates
    elements: ElementFindings

    @classmethod
    def of(cls, operations: Operations, lists: Listed) -> _Telling:
        states = QueueStates.of(operations, lists)
        elements = ElementFindings(operations, states.key, states.value)
        return cls(operations, lists, states, elements)

    def lost(self, remaining: Verdict) -> Result:
        """``remaining``: how values count that are missing and not lost for certain."""
        states = self.states
        lost = np.flatnonzero(states.is_lost)
        missing = np.flatnonzero(states.is_missing & ~states.is_lost)
        undecided = len(missing) if remaining is Verdict.UNKNOWN else 0
        findings = [
            self._lost(element)
            for element in self.elements.first_by_row(lost, states.puts.succeeded)
        ]
        findings += [self._not_dequeued(missing, remaining)] if len(missing) else []
        return conclude(
            LOST,
            checked=int(np.count_nonzero(states.puts.succeeded != NONE)) - undecided,
            findings=findings,
            finding_count=len(lost) + (1 if len(missing) else 0),
            numbers={"recovered_values": float(np.count_nonzero(states.is_recovered))},
        )

    def _lost(self, element: int) -> Finding:
        key, value = self.elements.names(element)
        enqueue, empty = self.states.puts.succeeded[element], self.states.empty[element]
        times = int(self.states.taken_count[element])
        fate = f"it was dequeued less often, {times} times" if times else "nobody dequeued it"
        sentence = (
            f"{value} is lost from {key}: it was enqueued, {fate}, and the queue was empty then."
        )
        none = f"All dequeues and drains returned {value} {times} times."
        steps = [
            f"enqueue {value} was over at {self.operations.finish[enqueue]:,} ns.",
            f"The queue was found empty by an operation that was under way {phrases.when(self.operations, empty)}.",
            none if times else f"No dequeue and no drain returned {value}.",
        ]
        in_doubt = int(self.states.takers_in_doubt[element])
        if in_doubt:
            steps.append(
                f"{in_doubt} dequeues of unknown outcome may have taken one value each; more than that are missing."
            )
        return self.elements.finding(LOST, key, sentence, steps, enqueue, empty)

    def _not_dequeued(self, missing: Numbers, verdict: Verdict) -> Finding:
        shown = self.elements.first_by_row(missing, self.states.puts.succeeded)
        key, value = self.elements.names(shown[0])
        values = "1 value was" if len(missing) == 1 else f"{len(missing)} values were"
        sentence = (
            f"{values} enqueued and not dequeued, and may be in the queue or with dequeues of unknown outcome: the "
            f"first is {value} of {key}."
        )
        proof = self.states.puts.succeeded[shown[: phrases.MAX_LISTED]]
        return self.elements.finding(LOST, key, sentence, [], *proof, verdict=verdict)

    def unexpected(self) -> Result:
        states, findings = self.states, []
        unexpected = np.flatnonzero(states.unexpected != NONE)
        for element in self.elements.first_by_row(unexpected, states.unexpected):
            key, value = self.elements.names(element)
            enqueue, why = self.elements.why_unexpected(element, states.puts, _WHY)
            sentence = f"{value} was dequeued from {key}, {why}."
            taken = states.unexpected[element]
            findings.append(self.elements.finding(UNEXPECTED, key, sentence, [], enqueue, taken))
        return self._of_taken(UNEXPECTED, findings, len(unexpected))

    def duplicate(self, verdict: Verdict) -> Result:
        states, findings = self.states, []
        twice = np.flatnonzero(states.is_duplicate)
        for element in self.elements.first_by_row(twice, states.last_taken):
            key, value = self.elements.names(element)
            sentence = (
                f"{value} was dequeued from {key} {states.taken_count[element]} times, and enqueued "
                f"{states.puts.attempt_count[element]} times."
            )
            if verdict is Verdict.VALID:
                sentence += " A queue that delivers at least once may do that."
            proof = (states.puts.attempted, states.first_taken, states.last_taken)
            rows = (positions[element] for positions in proof)
            findings.append(
                self.elements.finding(DUPLICATE, key, sentence, [], *rows, verdict=verdict)
            )
        return self._of_taken(DUPLICATE, findings, len(twice))

    def overtaking(self, searched: SearchedQueues | None = None) -> Result:
        """``searched``: queues of which all operations were searched for an order."""
        states = self.states
        pairs = (overtaken(self.operations, states), overtaken_in_drains(self.operations, states))
        late, early = (np.concatenate(both) for both in zip(*pairs, strict=True))
        findings = []
        for first, second in zip(
            late[:MAX_FINDINGS].tolist(), early[:MAX_FINDINGS].tolist(), strict=True
        ):
            key, value = self.elements.names(first)
            other = self.elements.names(second)[1]
            is_there = states.first_taken[first] == NONE
            before = f"and not {value}" if is_there else f"before {value}"
            sentence = (
                f"{other} was dequeued from {key} {before}, which had been enqueued before {other}."
            )
            enqueues = (states.puts.attempted[first], states.puts.attempted[second])
            dequeues = (states.first_taken[second], states.first_taken[first])
            later = f"{value} was dequeued by one under way {phrases.when(self.operations, dequeues[1])}: later."
            if dequeues[0] == dequeues[1]:
                later = f"The same drain returned {value} behind {other}."
            steps = [
                f"enqueue {value} was under way {phrases.when(self.operations, enqueues[0])}.",
                f"enqueue {other} was under way {phrases.when(self.operations, enqueues[1])}: later.",
                f"{other} was dequeued by an operation under way {phrases.when(self.operations, dequeues[0])}.",
                f"Nobody dequeued {value}." if is_there else later,
                "A queue gives first what came first.",
            ]
            findings.append(
                self.elements.finding(QUEUE_ORDER, key, sentence, steps, *enqueues, *dequeues)
            )
        more = searched.findings if searched is not None else ()
        return conclude(
            QUEUE_ORDER,
            checked=self._ordered_count(searched),
            findings=[*findings, *more],
            finding_count=len(late) + len(more),
        )

    def _ordered_count(self, searched: SearchedQueues | None) -> int:
        """How many values that were dequeued are decided: those with one past, and all of queues that were searched."""
        is_ordered = self.states.is_once
        if searched is not None:
            is_taken = self.states.first_taken != NONE
            is_ordered = is_ordered | (is_taken & np.isin(self.states.key, searched.keys))
        return int(np.count_nonzero(is_ordered))

    def empty(self, searched: SearchedQueues | None = None) -> Result:
        states, never_empty = self.states, NeverEmpty.of(self.operations, self.states)
        findings = []
        several = zip(never_empty.operations, never_empty.first, never_empty.end, strict=True)
        for operation, first, end in islice(several, MAX_FINDINGS):
            elements = never_empty.values[first:end]
            key = phrases.key_name(int(self.operations.key[operation]))
            values = [
                phrases.value_name(int(states.value[element]))
                for element in elements[: phrases.MAX_LISTED]
            ]
            more = (
                f" and {len(elements) - phrases.MAX_LISTED} more"
                if len(elements) > phrases.MAX_LISTED
                else ""
            )
            sentence = f"{key[0].upper()}{key[1:]} was found empty, and held {', '.join(values)}{more} all the while."
            steps = [
                f"It was found empty by an operation that was under way {phrases.when(self.operations, operation)}."
            ]
            rows = [operation]
            for element, value in zip(elements, values, strict=False):
                put, took = states.puts.attempted[element], states.first_taken[element]
                until = "and nobody dequeued it"
                if took != NONE:
                    until = (
                        f"and nobody began to dequeue it before {self.operations.start[took]:,} ns"
                    )
                steps.append(
                    f"enqueue {value} was over at {self.operations.finish[put]:,} ns, {until}."
                )
                rows += [put, took]
            findings.append(self.elements.finding(EMPTY, key, sentence, steps, *rows))
        return conclude(
            EMPTY,
            checked=self._ordered_count(searched),
            findings=findings,
            finding_count=len(never_empty.operations),
        )

    def _of_taken(self, decided: Property, findings: list[Finding], count: int) -> Result:
        checked = int(np.count_nonzero(self.states.first_taken != NONE))
        return conclude(decided, checked=checked, findings=findings, finding_count=count)


_SOURCE: Final = "Jepsen's total-queue; Herlihy and Wing (1990)."
LOST: Final = Property(
    name="queue-lost",
    promise="What was enqueued is dequeued before the queue is empty.",
    unit="acknowledged values",
    unknown="The queue was not seen empty since, or dequeues in doubt explain what is missing. In a `fifo-queue`: no "
    "dequeue succeeded.",
    source=_SOURCE,
    check=TotalQueue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.QUEUE_LOST,
)
UNEXPECTED: Final = ElementProperty(
    name="queue-unexpected",
    promise="Nothing is dequeued that nobody enqueued.",
    unit="values dequeued",
    source=_SOURCE,
    check=TotalQueue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.QUEUE_UNEXPECTED,
)
DUPLICATE: Final = ElementProperty(
    name="queue-duplicate",
    promise="Nothing is dequeued more often than it was enqueued.",
    unit="values dequeued",
    source=_SOURCE,
    check=TotalQueue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.QUEUE_DUPLICATE,
)
QUEUE_ORDER: Final = ElementProperty(
    name="queue-order",
    promise="What was enqueued first is dequeued first.",
    unit="values dequeued",
    source=_SOURCE,
    check=FifoQueue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.QUEUE_ORDER,
)
EMPTY: Final = ElementProperty(
    name="queue-empty",
    promise="A queue is found empty only when nothing is in it.",
    unit="values dequeued",
    source=_SOURCE,
    check=FifoQueue,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.QUEUE_EMPTY,
)
