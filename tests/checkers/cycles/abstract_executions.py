"""Whether a model allows a handful of transactions, by its definition as a set of abstract executions.

An *execution* is a total order AR of the committed transactions, and a relation VIS inside AR: what each one sees. It
explains a read by the last visible writer of the key in AR. Written from Cerone, Bernardi and Gotsman (CONCUR 2015);
dependencies and cycles do not occur here.

| level | what holds of VIS |
|---|---|
| read-uncommitted | nothing; AR keeps the order of the elements in lists that were read |
| read-committed | nothing; AR also puts each writer before its readers |
| read-atomic | reads see the last visible writer |
| causal | VIS is transitive as well |
| parallel-snapshot-isolation | of two writers of a key one sees the other as well |
| snapshot-isolation | who sees a transaction sees all that are before it in AR as well |
| serializable | VIS is AR |

Sessions are inside VIS, and inside AR under the two weakest levels. Each level asks for a smallest VIS, since what a
reader must not see only grows with VIS. So for each AR one VIS is enough.

Under read uncommitted a read may be of what is rolled back later. So it proves no commit of a transaction in doubt, and
lists of a key that differ show no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations

from nemesis.checkers.breaks.transactions import Micro
from tests.checkers.cycles.brute_force import Txn

LEVELS = (
    "read-uncommitted",
    "read-committed",
    "read-atomic",
    "causal",
    "parallel-snapshot-isolation",
    "snapshot-isolation",
    "serializable",
)
SESSIONS = ("", "strong-session-", "strong-")
READ_COMMITTED, READ_ATOMIC = 1, 2
Pair = tuple[Txn, Txn]
Read = tuple[Txn, int, tuple[int, ...]]
"""Reader, position among its micro-operations, and what it returned."""


def allowed(txns: Sequence[Txn], *, lists: bool) -> dict[str, bool]:
    """Return for each model whether some execution explains the transactions."""
    history = _History(txns, lists=lists)
    least = len(LEVELS) if history.is_impossible() else 0
    faults = 0 if least else history.weakest_fault()
    explained = {
        session: set() if least else history.explained(session, faults) for session in SESSIONS
    }
    return {
        session + level: number in explained[session]
        for session in SESSIONS
        for number, level in enumerate(LEVELS)
    }


def is_faultless(txns: Sequence[Txn], *, lists: bool) -> bool:
    """Return whether no level forbids a read by itself."""
    history = _History(txns, lists=lists)
    return not history.is_impossible() and history.weakest_fault() == len(LEVELS)


class _History:
    def __init__(self, txns: Sequence[Txn], *, lists: bool) -> None:
        self.lists = lists
        self.writer = {(m.key, m.value): t for t in txns for m in t.micro if m.value is not None}
        self.reads: list[Read] = [
            (t, n, m.read)
            for t in txns
            if t.kind == "ok"
            for n, m in enumerate(t.micro)
            if m.read is not None
        ]
        observed = {self.writer.get((t.micro[n].key, v)) for t, n, read in self.reads for v in read}
        self.certain = [t for t in txns if t.kind == "ok"]
        # A transaction in doubt that no read shows can be left out of every execution.
        self.committed = [t for t in txns if t.kind == "ok" or (t.kind == "info" and t in observed)]

    def is_impossible(self) -> bool:
        """Whether something was read that no level explains: unwritten values, or a value twice."""
        for t, n, read in self.reads:
            key = t.micro[n].key
            if any((key, value) not in self.writer for value in read) or len({*read}) < len(read):
                return True
        return False

    def _lists_agree(self, key: int) -> bool:
        """Whether of two lists that were read of a key one begins with the other."""
        lists = [read for t, n, read in self.reads if t.micro[n].key == key]
        return all(_is_prefix(a, b) for a, b in combinations(lists, 2))

    def weakest_fault(self) -> int:
        """Return the first level that forbids a read by itself; behind the last level if none does."""
        levels = [len(LEVELS)]
        for t, n, read in self.reads:
            key, before = t.micro[n].key, t.micro[:n]
            writers = [self.writer[key, value] for value in read]
            own = [m.value for m in before if m.key == key and m.value is not None]
            if any(w.kind == "fail" for w in writers):
                levels.append(READ_COMMITTED)
            if read and writers[-1] is not t and read[-1] != _written(writers[-1], key)[-1]:
                levels.append(READ_COMMITTED)
            if any(w is t and value not in own for w, value in zip(writers, read, strict=True)):
                levels.append(READ_COMMITTED)
            if self.lists and not self._lists_agree(key):
                levels.append(READ_COMMITTED)
            if self.lists and any(_is_reversed(w, key, read) for w in writers):
                levels.append(READ_COMMITTED)
            if not self._is_consistent(key, before, read):
                levels.append(READ_ATOMIC)
            if self.lists and any(w is not t and _skips_append(w, key, read) for w in writers):
                levels.append(READ_ATOMIC)
        return min(levels)

    def _is_consistent(self, key: int, before: Sequence[Micro], read: tuple[int, ...]) -> bool:
        """Whether a read returns what its transaction read and wrote itself before."""
        known: tuple[int, ...] | None = None
        suffix: tuple[int, ...] = ()
        for m in before:
            if m.key == key and m.value is not None:
                suffix = (*suffix, m.value) if self.lists else (m.value,)
                known = known if self.lists else ()
            elif m.key == key and m.read is not None:
                known, suffix = m.read, ()
        if known is not None:
            return read == (*known, *suffix)
        return read[len(read) - len(suffix) :] == suffix

    def explained(self, session: str, end: int) -> set[int]:
        """Return the levels below ``end`` that some execution explains."""
        weakest, others = range(min(READ_COMMITTED, end)), range(READ_COMMITTED, end)
        levels = self._explained_by(self.certain, session, weakest)
        return levels | self._explained_by(self.committed, session, others)

    def _explained_by(
        self, committed: Sequence[Txn], session: str, candidates: Iterable[int]
    ) -> set[int]:
        """Return the levels of these that an execution of these transactions explains."""
        sessions = {
            (a, b) for a in committed for b in committed if a is not b and _is_before(a, b, session)
        }
        listed = self._listed_order(committed)
        levels: set[int] = set()
        for permutation in permutations(committed):
            position = {t: number for number, t in enumerate(permutation)}
            left = set(candidates) - levels
            if left and all(position[a] < position[b] for a, b in sessions | listed):
                levels |= {level for level in left if self._explains(level, permutation, sessions)}
        return levels

    def _listed_order(self, committed: Sequence[Txn]) -> set[Pair]:
        """Pairs of writers whose elements a list has in this order; what no read shows is behind the others.

        The lists of a key that do not agree show no order.
        """
        pairs: set[Pair] = set()
        for key in {m.key for t in committed for m in t.micro} if self.lists else ():
            if not self._lists_agree(key):
                continue
            longest = max(
                (r for t, n, r in self.reads if t.micro[n].key == key), key=len, default=()
            )
            shown = [self.writer[key, value] for value in longest]
            rest = [t for t in committed for value in _written(t, key) if value not in longest]
            pairs |= {(a, b) for number, a in enumerate(shown) for b in shown[number + 1 :]}
            pairs |= {(a, b) for a in shown for b in rest}
        return {(a, b) for a, b in pairs if a is not b and {a, b} <= {*committed}}

    def _sources(self) -> Iterator[tuple[Txn, int, Txn | None]]:
        """Yield each read of what others wrote: reader, key, and the writer of the version."""
        for t, n, read in self.reads:
            key = t.micro[n].key
            writer = self.writer[key, read[-1]] if read else None
            if writer is not t:
                yield t, key, writer

    def _explains(self, level: int, permutation: Sequence[Txn], sessions: set[Pair]) -> bool:
        ordered = {
            (a, b) for number, a in enumerate(permutation) for b in permutation[number + 1 :]
        }
        sources = list(self._sources()) if level >= READ_COMMITTED else []
        sees = {(writer, reader) for reader, _, writer in sources if writer is not None}
        if not sees <= ordered:
            return False
        if level < READ_ATOMIC:
            return True
        vis = self._smallest(level, ordered, sees | sessions)
        position = {t: number for number, t in enumerate(permutation)}
        return not any(
            (other, reader) in vis and (writer is None or position[writer] < position[other])
            for reader, key, writer in sources
            for other in self.committed
            if other is not reader and _written(other, key)
        )

    def _smallest(self, level: int, ordered: set[Pair], vis: set[Pair]) -> set[Pair]:
        """Return the smallest VIS of a level that has these pairs."""
        name = LEVELS[level]
        if name == "serializable":
            return ordered
        if name in ("parallel-snapshot-isolation", "snapshot-isolation"):
            vis = vis | {(a, b) for a, b in ordered if self._conflict(a, b)}
        if name == "snapshot-isolation":
            return vis | {(a, c) for a, b in ordered for d, c in vis if b is d}
        while name != "read-atomic":
            more = {(a, c) for a, b in vis for d, c in vis if b is d} - vis
            if not more:
                break
            vis = vis | more
        return vis

    @staticmethod
    def _conflict(a: Txn, b: Txn) -> bool:
        return any(m.is_write and _written(b, m.key) for m in a.micro)


def _written(txn: Txn, key: int) -> list[int]:
    return [m.value for m in txn.micro if m.key == key and m.value is not None]


def _skips_append(writer: Txn, key: int, read: Sequence[int]) -> bool:
    """Whether a list has a later append of a transaction without an earlier one of it: no state of it has that."""
    shown = [value in read for value in _written(writer, key)]
    return any(not a and b for a, b in pairwise(shown))


def _is_reversed(writer: Txn, key: int, read: Sequence[int]) -> bool:
    """Whether a list shows the appends of a transaction in another order than that in which it made them."""
    positions = [read.index(value) for value in _written(writer, key) if value in read]
    return positions != sorted(positions)


def _is_prefix(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    short, long = sorted((a, b), key=len)
    return long[: len(short)] == short


def _is_before(a: Txn, b: Txn, session: str) -> bool:
    if session and a.process == b.process and a.end <= b.began:
        return True
    return session == "strong-" and a.end < b.began
