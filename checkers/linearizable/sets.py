"""Sets that only grow: what is added is read from then on.

An element is *known* from the end of its successful add, or of the first read that returned it. A read is *later* than
that if it began afterwards.

* **set-lost**: a known element that a later read did not return, and no read afterwards did (none that ended after that
  one began). If the last read to begin lacks the element and overlaps a read that returned it, Jepsen calls the element
  lost, too. But the other read may have seen it afterwards: ``unknown``. An element that was added, and that no read
  returned or could show since, is *never read*: it is reported and allowed in a set with a stable element, and in a
  ``LinearizableSet`` of which a read succeeded. A ``SetFull`` without a stable element is ``unknown``.
  Smallest break: add 1 is over; a read that begins afterwards returns nothing.
* **set-unexpected**: a read returned what nobody had tried to add by its end, or what certainly was not added.
  Smallest break: a read returns 1.
* **set-duplicate**: one read returned an element twice. Smallest break: add 1; a read returns 1, 1.
* **set-stale**: a later read did not return a known element, another one that began afterwards did. A set that need
  only in the end be what was added may do that (``SetFull``, which reports it), a linearizable one may not
  (``LinearizableSet``). There an element that Jepsen calls lost, and that is not lost for certain, is stale as well.
  Smallest break: add 1 is over; a read that begins afterwards returns nothing; the next one returns 1.
* **set-order** (``LinearizableSet``): two reads, each of which lacks what the other one returned; or a read that
  returned an element without one whose add had ended before the element's began. Together with the others this is all
  that a linearizable set can do wrong (``set_order``).
  Smallest break: two reads and two adds, all at once; one read returns 1, the other one 2.

Names and meanings are those of Jepsen's ``set-full``. A *stable* element is in a read that began after all reads that
lack it. Elements that are neither stable nor lost are no proof: ``checked`` leaves them out.

Limits: all that reads returned fits into memory (16 bytes for each element of each read).
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
from nemesis.checkers.linearizable.set_order import SetOrder
from nemesis.checkers.linearizable.set_states import FS, READ, SetStates
from nemesis.history.sources import EventSource

_WHY: Final = WhyUnexpected(
    too_late="before its add began",
    failed="whose add certainly failed",
    absent="which nobody had added",
)


class SetFull(ObjectCheck):
    fs = FS
    lists = (FS[READ],)
    stale: ClassVar[Verdict] = Verdict.VALID

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOST, UNEXPECTED, DUPLICATE, STALE)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        return self.judged(_Telling.of(operations, SetStates.of(operations, lists)))

    def judged(self, telling: _Telling) -> list[Result]:
        """Return a result for each property."""
        return [
            telling.lost(self.stale),
            telling.unexpected(),
            telling.duplicate(),
            telling.stale(self.stale),
        ]


class LinearizableSet(SetFull):
    stale = Verdict.INVALID

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (*super().properties(), SET_ORDER)

    def judged(self, telling: _Telling) -> list[Result]:
        results = [*super().judged(telling), telling.contradictions()]
        return decided_by_order(results, telling.operations, telling.operations.f == READ, "reads")


@dataclass(frozen=True, slots=True)
class _Telling:
    """What became of the elements, in results."""

    operations: Operations
    states: SetStates
    elements: ElementFindings

    @classmethod
    def of(cls, operations: Operations, states: SetStates) -> _Telling:
        return cls(operations, states, ElementFindings(operations, states.key, states.value))

    def lost(self, stale: Verdict) -> Result:
        """``stale``: how stale elements count.

        If they are allowed, elements that are perhaps lost are undecided, and so are elements that no read returned, of
        sets without a stable element.
        """
        states = self.states
        is_allowed = np.isin(states.key, states.key[states.is_stable]) | (stale is Verdict.INVALID)
        unread = {
            Verdict.UNKNOWN: np.flatnonzero(states.is_unread & ~is_allowed),
            Verdict.VALID: np.flatnonzero(states.is_unread & is_allowed),
        }
        lost = np.flatnonzero(states.is_lost)
        perhaps = np.flatnonzero(states.is_perhaps_lost & (stale is Verdict.VALID))
        findings = [
            self._lost(element) for element in self.elements.first_by_row(lost, states.last_absent)
        ]
        findings += [
            self._perhaps_lost(element)
            for element in self.elements.first_by_row(perhaps, states.last_absent)
        ]
        never_read = [
            self._unread(elements, verdict) for verdict, elements in unread.items() if len(elements)
        ]
        findings += never_read
        return conclude(
            LOST,
            checked=self._decided(),
            findings=findings,
            finding_count=len(lost) + len(perhaps) + len(never_read),
            numbers={
                "recovered_elements": float(np.count_nonzero(states.is_recovered)),
                "never_read_elements": float(np.count_nonzero(states.is_unread)),
            },
        )

    def _lost(self, element: int) -> Finding:
        key, value = self.elements.names(element)
        absent, present = self.states.last_absent[element], self.states.last_present[element]
        if present == NONE:
            before = self.states.puts.succeeded[element]
            since = f"the add of {value} succeeded"
        else:
            before = present
            since = f"the last read that returned {value} had ended"
        sentence = f"{value} is lost from {key}: a read that began after {since} did not return it."
        steps = [
            f"At {self.operations.finish[before]:,} ns {since}.",
            f"A read was under way {phrases.when(self.operations, absent)} and did not return it.",
            "Nothing removes an element.",
        ]
        proof = (self.states.puts.succeeded[element], present, absent)
        return self.elements.finding(LOST, key, sentence, steps, *proof)

    def _perhaps_lost(self, element: int) -> Finding:
        key, value = self.elements.names(element)
        absent, present = self.states.last_absent[element], self.states.last_present[element]
        sentence = (
            f"{value} may be lost from {key}: the last read to begin did not return it, and another one "
            "that did was under way then."
        )
        steps = [
            f"{value} was known when its add, or the first read that returned it, had ended.",
            f"A read was under way {phrases.when(self.operations, absent)} and did not return it.",
            f"A read was under way {phrases.when(self.operations, present)} and returned it, before or after that.",
            "No later read shows whether the element is there. Jepsen's set-full calls it lost.",
        ]
        proof = (self.states.puts.succeeded[element], present, absent)
        return self.elements.finding(LOST, key, sentence, steps, *proof, verdict=Verdict.UNKNOWN)

    def _unread(self, unread: Numbers, verdict: Verdict) -> Finding:
        shown = self.elements.first_by_row(unread, self.states.puts.succeeded)
        key, value = self.elements.names(shown[0])
        elements = "1 element was" if len(unread) == 1 else f"{len(unread)} elements were"
        sentence = f"{elements} added, and no read began afterwards to show it: the first is {value} of {key}."
        proof = self.states.puts.succeeded[shown[: phrases.MAX_LISTED]]
        return self.elements.finding(LOST, key, sentence, [], *proof, verdict=verdict)

    def unexpected(self) -> Result:
        states, findings = self.states, []
        for entry in self._entries(states.unexpected):
            element, read = int(states.returned[entry]), int(states.returned_by[entry])
            key, value = self.elements.names(element)
            add, why = self.elements.why_unexpected(element, states.puts, _WHY)
            sentence = f"A read of {key} returned {value}, {why}."
            findings.append(self.elements.finding(UNEXPECTED, key, sentence, [], add, read))
        return self._of_entries(UNEXPECTED, findings, len(states.unexpected))

    def duplicate(self) -> Result:
        states, findings = self.states, []
        for entry in self._entries(states.twice):
            key, value = self.elements.names(int(states.returned[entry]))
            sentence = f"A read of {key} returned {value} more than once."
            read = int(states.returned_by[entry])
            findings.append(self.elements.finding(DUPLICATE, key, sentence, [], read))
        return self._of_entries(DUPLICATE, findings, len(states.twice))

    def stale(self, verdict: Verdict) -> Result:
        is_violation = verdict is not Verdict.VALID
        stale = np.flatnonzero(self.states.is_stale | (self.states.is_perhaps_lost & is_violation))
        findings = [
            self._stale(element, verdict)
            for element in self.elements.first_by_row(stale, self.states.last_absent)
        ]
        return conclude(
            STALE,
            checked=self._decided(),
            findings=findings,
            finding_count=len(stale),
        )

    def _stale(self, element: int, verdict: Verdict) -> Finding:
        key, value = self.elements.names(element)
        states = self.states
        proof = (
            states.puts.succeeded,
            states.first_present,
            states.last_absent,
            states.last_present,
        )
        absent = phrases.when(self.operations, states.last_absent[element])
        present = phrases.when(self.operations, states.last_present[element])
        after = "afterwards" if states.is_stale[element] else "meanwhile or afterwards"
        sentence = f"A read of {key} did not return {value}, which was known; another one returned it {after}."
        if verdict is Verdict.VALID:
            sentence += " A set that need only in the end be what was added may do that."
        steps = [
            f"{value} was known when its add, or the first read that returned it, had ended.",
            f"A read was under way {absent}, which is later, and did not return it.",
            f"A read that was under way {present} returned it.",
        ]
        rows = (positions[element] for positions in proof)
        return self.elements.finding(STALE, key, sentence, steps, *rows, verdict=verdict)

    def contradictions(self) -> Result:
        set_order = SetOrder.of(self.operations, self.states)
        apart = zip(set_order.apart, set_order.having, set_order.lacking, strict=True)
        overtaken = zip(
            set_order.overtaking, set_order.overtaken, set_order.witness_read, strict=True
        )
        findings = [self._apart(*entry) for entry in islice(apart, MAX_FINDINGS)]
        findings += [self._overtaken(*entry) for entry in islice(overtaken, MAX_FINDINGS)]
        return conclude(
            SET_ORDER,
            checked=self._decided(),
            findings=findings,
            finding_count=len(set_order.apart) + len(set_order.overtaking),
        )

    def _apart(self, element: int, having: int, lacking: int) -> Finding:
        key, value = self.elements.names(element)
        states = self.states
        elements = states.returned[states.returned_by == having]
        other_elements = states.returned[states.returned_by == lacking]
        _, other = self.elements.names(int(np.setdiff1d(other_elements, elements)[0]))
        sentence = f"A read of {key} returned {value} without {other}, another one {other} without {value}."
        steps = [
            f"A read was under way {phrases.when(self.operations, having)}: it returned {value} and not {other}.",
            f"Another one was {phrases.when(self.operations, lacking)}: it returned {other} and not {value}.",
            "Nothing removes an element: whichever was first, the other one would have what it had.",
        ]
        return self.elements.finding(SET_ORDER, key, sentence, steps, having, lacking)

    def _overtaken(self, newer: int, older: int, read: int) -> Finding:
        key, value = self.elements.names(newer)
        _, missing = self.elements.names(older)
        adds = self.states.puts.succeeded[older], self.states.puts.attempted[newer]
        sentence = (
            f"A read of {key} returned {value} without {missing}, which had been added before."
        )
        steps = [
            f"The add of {missing} was under way {phrases.when(self.operations, adds[0])}.",
            f"The first add of {value} was {phrases.when(self.operations, adds[1])}, which is later.",
            f"A read was under way {phrases.when(self.operations, read)}: it returned {value} and not {missing}.",
        ]
        return self.elements.finding(SET_ORDER, key, sentence, steps, *adds, read)

    def _decided(self) -> int:
        """How many known elements are stable or lost."""
        is_known = (self.states.puts.succeeded != NONE) | (self.states.first_present != NONE)
        return int(np.count_nonzero(is_known & ~self.states.is_undecided))

    def _of_entries(self, decided: Property, findings: list[Finding], count: int) -> Result:
        checked = len(self.states.returned)
        return conclude(decided, checked=checked, findings=findings, finding_count=count)

    def _entries(self, entries: Numbers) -> list[int]:
        rows = self.operations.completed[self.states.returned_by[entries]]
        permutation = np.lexsort((self.states.returned[entries], rows))
        first_entries: list[int] = entries[permutation][:MAX_FINDINGS].tolist()
        return first_entries


_SOURCE: Final = "Jepsen's set-full; Herlihy and Wing (1990)."
LOST: Final = Property(
    name="set-lost",
    promise="What was added is read from then on.",
    unit="elements",
    unknown="In a `set`, no element is stable, or the last read lacks an element and overlaps one that has it. Or "
    "no read succeeded, or events cannot be paired to operations.",
    source=_SOURCE,
    check=SetFull,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.SET_LOST,
)
UNEXPECTED: Final = ElementProperty(
    name="set-unexpected",
    promise="Nothing is read that nobody added.",
    unit="values read",
    source=_SOURCE,
    check=SetFull,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.SET_UNEXPECTED,
)
DUPLICATE: Final = ElementProperty(
    name="set-duplicate",
    promise="No read returns an element twice.",
    unit="values read",
    source=_SOURCE,
    check=SetFull,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.SET_DUPLICATE,
)
STALE: Final = ElementProperty(
    name="set-stale",
    promise="No later read misses what is known to be there.",
    unit="elements",
    source=_SOURCE,
    check=SetFull,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.SET_STALE,
)
SET_ORDER: Final = ElementProperty(
    name="set-order",
    promise="One order of all operations explains every read.",
    unit="elements",
    source=_SOURCE,
    check=LinearizableSet,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.SET_ORDER,
)
