"""Anomalies in words: one sentence, the steps that contradict each other, and the rows that show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from nemesis.checkers.cycles.analysis import Analysis
from nemesis.checkers.cycles.existence import existence_finding
from nemesis.checkers.cycles.initial import InitialValue
from nemesis.checkers.cycles.models import (
    ANOMALIES,
    CYCLE_EXISTS,
    CYCLES,
    SUFFIXES,
    Model,
    SessionOrder,
)
from nemesis.checkers.cycles.reasons import Reasons
from nemesis.checkers.cycles.search import Cycle
from nemesis.checkers.cycles.transaction_names import SHOWN, Words
from nemesis.checkers.cycles.transaction_rows import FAIL
from nemesis.checkers.cycles.transactions import WRITE
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS
from nemesis.checkers.framework.model import Finding, Verdict

BECAUSE: Final = {
    "G0": "by the order of their writes",
    "G1c": "by their writes and who read them",
    "G-single": "by their writes, who read them, and one read that missed a write",
    "G-nonadjacent": "by their writes, who read them, and reads that missed writes",
    "G2-item": "by reads that missed each other's writes",
}
"""By anomaly, what the order of its transactions is known by."""
ORDER_PHRASES: Final = {
    SessionOrder.NONE: "",
    SessionOrder.PROCESS: ", and by the order of a process",
    SessionOrder.REALTIME: ", and by real time",
}


class Explainer:
    """Tells what an analysis found, as findings under a consistency model."""

    def __init__(self, analysis: Analysis, model: Model) -> None:
        self._analysis = analysis
        self._words = Words(analysis)
        self._model = model

    def findings(self, name: str) -> tuple[list[Finding], int]:
        """Return the first findings of this anomaly, and how many there are."""
        if name in CYCLES:
            cycles = self._analysis.cycles.get(name, [])
            return [self._cycle(cycle) for cycle in cycles[:MAX_FINDINGS]], len(cycles)
        if name == "lost-update":
            assert self._analysis.lost is not None
            pairs = list(
                zip(*(part[:MAX_FINDINGS].tolist() for part in self._analysis.lost), strict=True)
            )
            return [self._lost_update(*pair) for pair in pairs], len(self._analysis.lost[0])
        if name == CYCLE_EXISTS:
            exists = self._analysis.cycle_exists
            if exists is None:
                return [], 0
            if exists.certain is not None:
                named = self._cycle(exists.certain)
                return [msgspec.structs.replace(named, property=CYCLE_EXISTS)], 1
            return [existence_finding(self._words, exists, self._model)], 1
        occurrences = self._analysis.occurrences.get(name)
        if occurrences is None:
            return [], 0
        tell = {
            "garbage-read": self._garbage,
            "duplicate-elements": self._duplicate,
            "incompatible-order": self._incompatible,
            "future-read": self._future,
            "internal": self._internal,
            "G1a": self._aborted,
            "G1b": self._halfway,
            "dirty-update": self._dirty_update,
        }[name]
        count = len(occurrences)
        nothing = np.full(count, -1, dtype=np.int64)
        reads = occurrences.reads if len(occurrences.reads) else nothing
        writes = occurrences.writes if len(occurrences.writes) else nothing
        both = zip(reads[:MAX_FINDINGS].tolist(), writes[:MAX_FINDINGS].tolist(), strict=True)
        findings = [tell(read, write) for read, write in both]
        if name == "garbage-read" and self._analysis.suggestion is not None:
            return [*findings, self._initial(self._analysis.suggestion)], count + 1
        return findings, count

    def trouble(self, name: str) -> tuple[list[Finding], int]:
        """Return what keeps parts of the history from being analysed."""
        writes, txns = self._analysis.writes, self._analysis.txns
        findings = [
            finding(name, "the history", problem, verdict=Verdict.UNKNOWN)
            for problem in txns.problems
        ]
        for write in writes.repeated[:MAX_FINDINGS].tolist():
            key, value = int(writes.key[write]), int(writes.value[write])
            first = writes.find(key, value)
            a, b = int(writes.txn[first]), int(writes.txn[write])
            by = (
                f"by {txns.name(a)} and by {txns.name(b)}" if a != b else f"twice by {txns.name(a)}"
            )
            if first == write:
                by = f"by {txns.name(a)}, and is its initial value"
            about = self._words.key(int(writes.micro[write]))
            sentence = (
                f"{value} was written to {about} {by}, so what was read of it cannot be told apart."
            )
            rows = dict.fromkeys([int(txns.row[a]), int(txns.row[b])])
            findings.append(finding(name, about, sentence, *rows, verdict=Verdict.UNKNOWN))
        return findings, len(txns.problems) + len(writes.repeated)

    def _say(
        self,
        name: str,
        keys: Iterable[str],
        sentence: str,
        txns: Iterable[int],
        steps: Iterable[str] = (),
    ) -> Finding:
        forbidden = self._model.forbids(ANOMALIES[name])
        if not forbidden:
            sentence += f" The model {self._model.name} allows that."
        rows = dict.fromkeys(int(self._analysis.txns.row[txn]) for txn in txns)
        verdict = Verdict.INVALID if forbidden else Verdict.VALID
        about = ", ".join(dict.fromkeys(keys)) or "the history"
        return finding(name, about, sentence, *rows, verdict=verdict, steps=steps)

    # Anomalies that are no cycles.

    def _garbage(self, read: int, _: int) -> Finding:
        words, writes = self._words, self._analysis.writes
        key = int(self._analysis.micro.key[read])
        elements = self._analysis.micro.elements(read)
        garbage = next(element for element in elements if writes.find(key, element) < 0)
        about = words.key(read)
        sentence = f"{words.name(read)} read {words.element(garbage)} of {about}, which nobody {words.wrote}."
        return self._say("garbage-read", [about], sentence, [words.txn(read)])

    def _initial(self, suggestion: InitialValue) -> Finding:
        """The initial value was concluded from reads."""
        words, read = self._words, suggestion.read
        row = int(self._analysis.txns.row[words.txn(read)])
        return finding(
            "garbage-read",
            words.key(read),
            suggestion.sentence,
            row,
            verdict=Verdict.UNKNOWN,
        )

    def _duplicate(self, read: int, _: int) -> Finding:
        elements = self._analysis.micro.elements(read)
        twice = next(element for n, element in enumerate(elements) if element in elements[:n])
        sentence = f"{self._words.read(read)}, in which {twice} stands more than once."
        keys, txns = [self._words.key(read)], [self._words.txn(read)]
        return self._say("duplicate-elements", keys, sentence, txns)

    def _incompatible(self, read: int, write: int) -> Finding:
        if write >= 0:
            return self._reversed(read, write)
        words, list_orders, micro = self._words, self._analysis.list_orders, self._analysis.micro
        assert list_orders is not None
        about = words.key(read)
        longest = int(list_orders.longest[micro.key[read]])
        pairs = enumerate(zip(micro.elements(read), micro.elements(longest), strict=False))
        position, (element, other) = next((n, (a, b)) for n, (a, b) in pairs if a != b)
        sentence = (
            f"{words.read(read)}, and {words.name(longest)} read {words.value(longest)}: neither is how the other one "
            "begins."
        )
        steps = [
            f"Elements are only ever appended to {about}: of two lists read of it, one begins with the other.",
            f"In place {position} {words.name(read)} read {element}, {words.name(longest)} {other}.",
        ]
        txns = [words.txn(read), words.txn(longest)]
        return self._say("incompatible-order", [about], sentence, txns, steps)

    def _reversed(self, read: int, append: int) -> Finding:
        """A list in which an append stands before an earlier one of the same transaction."""
        words, writes, list_orders = self._words, self._analysis.writes, self._analysis.list_orders
        assert list_orders is not None
        txn = int(writes.txn[append])
        own = np.flatnonzero(
            (writes.txn[:append] == txn) & (writes.key[:append] == writes.key[append])
        )
        earlier = int(own[list_orders.position[own] > list_orders.position[append]][0])
        sentence = (
            f"{words.read(read)}, though {self._analysis.txns.name(txn)} {words.wrote} "
            f"{int(writes.value[earlier])} to it before {int(writes.value[append])}."
        )
        return self._say("incompatible-order", [words.key(read)], sentence, [txn, words.txn(read)])

    def _internal(self, read: int, _: int) -> Finding:
        words, micro = self._words, self._analysis.micro
        before = int(micro.previous[read])
        if read in self._analysis.occurrences["future-read"].reads:
            return self._later("internal", read)
        did = words.written if micro.code[before] == WRITE else "read"
        sentence = f"{words.read(read)}, though just before it had {did} {words.value(before)}."
        return self._say("internal", [words.key(read)], sentence, [words.txn(read)])

    def _future(self, read: int, _: int) -> Finding:
        return self._later("future-read", read)

    def _later(self, name: str, read: int) -> Finding:
        """A read of what its transaction wrote only later."""
        words, micro = self._words, self._analysis.micro
        held = set(micro.elements(read))
        last = int(np.searchsorted(micro.txn, micro.txn[read], side="right"))
        later = next(
            micro.elements(number)[0]
            for number in range(read + 1, last)
            if micro.code[number] == WRITE
            and micro.key[number] == micro.key[read]
            and micro.elements(number)[0] in held
        )
        sentence = f"{words.read(read)}, which it {words.wrote} only later."
        if len(held) > 1:
            sentence = f"{words.read(read)}, though it {words.wrote} {later} only later."
        return self._say(name, [words.key(read)], sentence, [words.txn(read)])

    def _aborted(self, read: int, write: int) -> Finding:
        words, writes = self._words, self._analysis.writes
        writer = int(writes.txn[write])
        failed = (
            f"{int(writes.value[write])} is from {self._analysis.txns.name(writer)}, which failed"
        )
        sentence = f"{words.read(read)}, and {failed}."
        return self._say("G1a", [words.key(read)], sentence, [writer, words.txn(read)])

    def _halfway(self, read: int, write: int) -> Finding:
        words, writes = self._words, self._analysis.writes
        writer = int(writes.txn[write])
        sentence = (
            f"{words.read(read)}, though {self._analysis.txns.name(writer)}, which {words.wrote} "
            f"{int(writes.value[write])}, went on to write to it."
        )
        return self._say("G1b", [words.key(read)], sentence, [writer, words.txn(read)])

    def _dirty_update(self, _: int, write: int) -> Finding:
        writes, list_orders, txns = (
            self._analysis.writes,
            self._analysis.list_orders,
            self._analysis.txns,
        )
        assert list_orders is not None
        key = int(writes.key[write])
        following = list_orders.write[
            list_orders.position[write] + 1 : list_orders.first[key + 1]
        ].tolist()
        after = next(w for w in following if w >= 0 and txns.outcome[writes.txn[w]] != FAIL)
        failed, writer = int(writes.txn[write]), int(writes.txn[after])
        about = self._words.key(int(writes.micro[write]))
        sentence = (
            f"{txns.name(writer)} appended {int(writes.value[after])} to {about} after {int(writes.value[write])}, "
            f"which is from {txns.name(failed)}, which failed."
        )
        reader = self._words.txn(int(list_orders.longest[key]))
        return self._say("dirty-update", [about], sentence, [failed, writer, reader])

    def _lost_update(self, read: int, write: int, other_read: int, other_write: int) -> Finding:
        words, writes = self._words, self._analysis.writes
        a, b = words.name(read), words.name(other_read)
        value, about = words.value(read), words.key(read)
        sentence = f"{a} and {b} both read {value} of {about} and then wrote to it: one of the updates is lost."
        steps = [
            f"{words.read(read)}, and then {words.wrote} {int(writes.value[write])}.",
            f"{words.read(other_read)}, too, and then {words.wrote} {int(writes.value[other_write])}.",
            "Had one of them come after the other, it would have read what that one left.",
        ]
        txns = [words.txn(read), words.txn(other_read)]
        return self._say("lost-update", [about], sentence, txns, steps)

    # Cycles.

    def _cycle(self, cycle: Cycle) -> Finding:
        txns = [step.source for step in cycle.steps]
        names = [self._analysis.txns.name(txn) for txn in txns]
        keys = [self._words.key(step.via) for step in cycle.steps if step.via >= 0]
        session_order = ANOMALIES[cycle.name].session_order
        name = cycle.name.removesuffix(SUFFIXES[session_order])
        sentence = (
            f"{_listed(names)} have no order: each comes before the next, and the last before the first, "
            f"{BECAUSE[name]}{ORDER_PHRASES[session_order]}."
        )
        reasons = Reasons(self._words)
        steps = [reasons.of(step) for step in cycle.steps]
        steps.append(f"So {names[0]} would have come before itself.")
        return self._say(cycle.name, keys, sentence, txns, steps)


def _listed(names: list[str]) -> str:
    """Names as a sentence has them; those in the middle of many are only counted."""
    if len(names) > SHOWN:
        return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
