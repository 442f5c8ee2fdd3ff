"""The reason for each edge of a cycle, in words."""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.edges import PROCESS, REALTIME, WR, WW
from nemesis.checkers.cycles.key_reasons import order_reason
from nemesis.checkers.cycles.search import Step
from nemesis.checkers.cycles.transaction_names import SHOWN, Words
from nemesis.checkers.cycles.transactions import WRITE


class Reasons:
    """Tells why one transaction comes before another."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._analysis = words.analysis

    def of(self, step: Step) -> str:
        """Return the reason for an edge, a sentence."""
        a, b = self._analysis.txns.name(step.source), self._analysis.txns.name(step.target)
        return f"{a} comes before {b}: {self._because(step, a, b)}."

    def _because(self, step: Step, a: str, b: str) -> str:
        analysis, words = self._analysis, self._words
        is_list = analysis.list_orders is not None
        if step.kind == PROCESS:
            process = analysis.txns.processes[int(analysis.txns.process[step.target])]
            return f"process {process} had ended {a} when it began {b}"
        if step.kind == REALTIME:
            return f"{a} had ended before {b} began"
        if step.kind == WR:
            whose = f"whose last element {a} appended" if is_list else f"which {a} wrote"
            return f"{words.read(step.via)}, {whose}"
        if is_list:
            return self._overwrites(step, a, b) if step.kind == WW else self._misses(step, b)
        if step.kind == WW:
            base = self._base(step.via)
            if not self._is_of(int(analysis.last_read[base]), step.source):
                return self._ordered(step, a, b)
            return f"{words.read(base)}, which {a} wrote, and then wrote {words.value(step.via)}"
        written = self._writes_to(step.target, int(analysis.micro.key[step.via]))[-1]
        sentence = f"{words.read(step.via)}, and {b} replaced it by {words.value(written)}"
        read = int(analysis.last_read[step.via])
        is_known = read < 0 or analysis.last_read[self._base(written)] == read
        reason = "" if is_known else order_reason(words, read, step.target)
        return f"{sentence} ({reason})" if reason else sentence

    def _is_of(self, write: int, txn: int) -> bool:
        """Whether a write, if it is any, is of this transaction."""
        return write >= 0 and int(self._analysis.writes.txn[write]) == txn

    def _ordered(self, step: Step, a: str, b: str) -> str:
        """Two writes of a register that an option about keys orders."""
        analysis, words = self._analysis, self._words
        key = int(analysis.micro.key[step.via])
        first = self._writes_to(step.source, key)[-1]
        reason = order_reason(
            words, int(np.searchsorted(analysis.writes.micro, first)), step.target
        )
        return f"{a} wrote {words.value(first)} to {words.key(first)}, and {b} {words.value(step.via)} later ({reason})"

    def _base(self, micro: int) -> int:
        """The first micro-operation of the same transaction on the same key."""
        previous = self._analysis.micro.previous
        while previous[micro] >= 0:
            micro = int(previous[micro])
        return micro

    def _writes_to(self, txn: int, key: int) -> list[int]:
        micro = self._analysis.micro
        first, end = np.searchsorted(micro.txn, [txn, txn + 1]).tolist()
        return [
            number
            for number in range(first, end)
            if micro.code[number] == WRITE and micro.key[number] == key
        ]

    def _overwrites(self, step: Step, a: str, b: str) -> str:
        """Two appends to one list, in the order in which they stand there."""
        writes, list_orders, words = self._analysis.writes, self._analysis.list_orders, self._words
        assert list_orders is not None
        key = int(self._analysis.micro.key[step.via])
        first, end = list_orders.first[key : key + 2].tolist()
        position = int(list_orders.position[np.searchsorted(writes.micro, step.via)])
        preceding = list_orders.write[first : end if position < 0 else position].tolist()
        before = next(w for w in reversed(preceding) if w >= 0 and writes.txn[w] == step.source)
        longest = int(list_orders.longest[key])
        if position < 0:
            shown = f"{words.read(longest)}, without the latter"
        else:
            shown = f"{words.name(longest)} read {self._around(longest, position - first)}"
        appended = f"{a} appended {int(writes.value[before])} to {words.key(step.via)}"
        return f"{appended}, and {b} {words.value(step.via)} after it: {shown}"

    def _around(self, read: int, position: int) -> str:
        """A list that was read, as far as the element in this place."""
        elements = self._analysis.micro.elements(read)
        shown = elements[max(0, position + 1 - SHOWN) : position + 1]
        before = "…, " if position + 1 > SHOWN else ""
        after = ", …" if position + 1 < len(elements) else ""
        return f"[{before}{', '.join(map(str, shown))}{after}]"

    def _misses(self, step: Step, b: str) -> str:
        """A list that was read without an element that was appended to it."""
        analysis = self._analysis
        elements = set(analysis.micro.elements(step.via))
        missed = next(
            self._words.value(micro)
            for micro in self._writes_to(step.target, int(analysis.micro.key[step.via]))
            if int(self._words.value(micro)) not in elements
        )
        return f"{self._words.read(step.via)}, without {missed}, which {b} appended"
