"""Whether a guarantee allows a handful of transactions, by its definition as a set of executions.

An execution is a total order of the committed transactions, and for each read the writes of its key that are visible.
The definition has two conditions: the read returns the last visible write, and a list has all writes that are visible.
Each visible set is the smallest one that the guarantee allows, as a larger one explains less.

Sessions order the micro-operations of a process, over its transactions and inside each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations

from nemesis.checkers.breaks.transactions import Micro
from tests.checkers.cycles.brute_force import Txn

MicroIndex = tuple[Txn, int]
"""A micro-operation: its transaction, and its position there."""
Visible = dict[MicroIndex, set[MicroIndex]]


def keeps(txns: Sequence[Txn], guarantee: str, *, lists: bool) -> bool:
    """Whether some execution of these transactions keeps a guarantee; nothing forbids a read by itself."""
    history = _History(txns, lists=lists)
    if history.is_impossible():
        return False
    if guarantee == "monotonic-atomic-view" and history.is_uncommitted():
        return False
    return any(
        history.explains(permutation, guarantee) for permutation in permutations(history.committed)
    )


class _History:
    def __init__(self, txns: Sequence[Txn], *, lists: bool) -> None:
        self.lists = lists
        self.txns = txns
        self.writer: dict[tuple[int, int], MicroIndex] = {
            (m.key, m.value): (t, n)
            for t in txns
            for n, m in enumerate(t.micro)
            if m.value is not None
        }
        self.reads = [
            (t, n)
            for t in txns
            if t.kind == "ok"
            for n, m in enumerate(t.micro)
            if m.read is not None
        ]
        observed = {
            self.writer[self.micro(read).key, value][0]
            for read in self.reads
            for value in self.micro(read).read or ()
            if (self.micro(read).key, value) in self.writer
        }
        self.committed = [t for t in txns if t.kind == "ok" or (t.kind == "info" and t in observed)]

    @staticmethod
    def micro(index: MicroIndex) -> Micro:
        return index[0].micro[index[1]]

    def elements(self, read: MicroIndex) -> list[MicroIndex]:
        """The writes that a read returned, without those of failed transactions."""
        key, values = self.micro(read).key, self.micro(read).read or ()
        written = [self.writer[key, value] for value in values]
        return [write for write in written if write[0].kind != "fail"]

    def is_impossible(self) -> bool:
        """Whether something was read that no transaction wrote, or twice."""
        for read in self.reads:
            key, values = self.micro(read).key, self.micro(read).read or ()
            if any((key, value) not in self.writer for value in values):
                return True
            if len({*values}) < len(values):
                return True
        return False

    def is_uncommitted(self) -> bool:
        """Whether read committed forbids a read by itself."""
        for read in self.reads:
            txn, n = read
            key, values = self.micro(read).key, self.micro(read).read or ()
            written = [self.writer[key, value] for value in values]
            if any(w[0].kind == "fail" or (w[0] is txn and w[1] > n) for w in written):
                return True
            if written and written[-1][0] is not txn and written[-1] != self.last(written[-1]):
                return True
            if self.lists and not self.lists_agree(key, lambda r: list(self.micro(r).read or ())):
                return True
            if any(
                a[0] is b[0] and a[1] > b[1] for a in written for b in written[written.index(a) :]
            ):
                return True
        return False

    def last(self, write: MicroIndex) -> MicroIndex:
        txn, key = write[0], self.micro(write).key
        return txn, max(n for n, m in enumerate(txn.micro) if m.is_write and m.key == key)

    def lists_agree(self, key: int, shown: Callable[[MicroIndex], list[object]]) -> bool:
        lists = sorted((shown(r) for r in self.reads if self.micro(r).key == key), key=len)
        return all(b[: len(a)] == a for a, b in pairwise(lists))

    def before(self, a: MicroIndex, b: MicroIndex) -> bool:
        """Whether a session has a micro-operation before another one."""
        if a[0] is b[0]:
            return a[1] < b[1]
        return a[0].process == b[0].process and a[0].end <= b[0].began

    def writes(self, key: int | None = None) -> list[MicroIndex]:
        return [
            (t, n)
            for t in self.committed
            for n, m in enumerate(t.micro)
            if m.is_write and key in (None, m.key)
        ]

    def explains(self, permutation: Sequence[Txn], guarantee: str) -> bool:
        position = {t: number for number, t in enumerate(permutation)}

        def position_of(write: MicroIndex) -> tuple[int, int]:
            return position[write[0]], write[1]

        if self.lists and not all(self._is_listed(key, position) for key in self._keys()):
            return False
        visible = self._visible(guarantee)
        if not all(self._returns(read, visible[read], position_of) for read in visible):
            return False
        if guarantee == "monotonic-writes":
            return all(
                position[a[0]] <= position[b[0]]
                for a in self.writes()
                for b in self.writes()
                if self.before(a, b)
            )
        if guarantee == "writes-follow-reads":
            return all(
                position_of(shown) < position_of(later)
                for read in visible
                for shown in visible[read]
                for later in self.writes()
                if self.before(read, later)
            )
        if guarantee == "monotonic-atomic-view":
            return all(
                shown[0] is read[0] or position[shown[0]] < position[read[0]]
                for read in visible
                for shown in self._source(read)
            )
        return True

    def _keys(self) -> set[int]:
        return {m.key for t in self.txns for m in t.micro}

    def _is_listed(self, key: int, position: dict[Txn, int]) -> bool:
        """Whether the lists of a key show its appends in this order, and what none shows comes after them."""
        if not self.lists_agree(key, lambda r: list(self.elements(r))):
            return False
        longest: list[MicroIndex] = max(
            (self.elements(r) for r in self.reads if self.micro(r).key == key), key=len, default=[]
        )
        unread = [w for w in self.writes(key) if w not in longest]
        pairs = [*pairwise(longest), *((longest[-1], w) for w in unread if longest)]
        return all(position[a[0]] <= position[b[0]] for a, b in pairs)

    def _source(self, read: MicroIndex) -> list[MicroIndex]:
        """The write that a read returned."""
        return self.elements(read)[-1:]

    def _known(self) -> Iterator[MicroIndex]:
        """Yield the reads that show a version which is not of a failed transaction."""
        for read in self.reads:
            if self.lists or self.elements(read) or not self.micro(read).read:
                yield read

    def _visible(self, guarantee: str) -> Visible:
        known = list(self._known())
        visible = {read: {*self._source(read)} for read in known}
        earlier = {read: [r for r in known if self.before(r, read)] for read in known}
        for read in known:
            key = self.micro(read).key
            if guarantee == "read-your-writes":
                visible[read] |= {w for w in self.writes(key) if self.before(w, read)}
            elif guarantee == "monotonic-reads":
                for other in earlier[read]:
                    if self.micro(other).key == key:
                        visible[read] |= {*self._source(other)}
            elif guarantee == "monotonic-atomic-view":
                shown = {
                    s[0] for r in earlier[read] if r[0] is read[0] for s in self._source(r)
                } - {read[0]}
                visible[read] |= {self.last(w) for w in self.writes(key) if w[0] in shown}
        return visible

    def _returns(
        self,
        read: MicroIndex,
        visible: set[MicroIndex],
        position_of: Callable[[MicroIndex], tuple[int, int]],
    ) -> bool:
        elements = self.elements(read)
        if self.lists and not visible <= {*elements}:
            return False
        return not visible or (bool(elements) and max(visible, key=position_of) == elements[-1])
