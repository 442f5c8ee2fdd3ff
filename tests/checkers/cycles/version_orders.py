"""Registers judged by trying every order of versions, by the definitions of the models. For a handful of transactions.

Written from the definitions, without looking at the checkers: dictionaries and loops. Serializability is tried by
serial orders in ``brute_force``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

import networkx as nx
import numpy as np

from nemesis.checkers.cycles.transaction_rows import FAIL, INFO, INVOKE, OK, Rows
from tests.checkers.cycles.brute_force import Txn

Pair = tuple[int, int]
KINDS = {"ok": OK, "fail": FAIL, "info": INFO}
SESSIONS = {"": "", "strong-session-": "process", "strong-": "realtime"}
FROM = {"G1a": 0, "G1b": 0, "future": 0, "internal": 1}
"""By anomaly without a cycle, from which of ``LEVELS`` on it is forbidden."""


def rows_of(txns: list[Txn]) -> Rows:
    """The rows of transactions, by time."""
    listed = []
    for t in txns:
        asked = [number for m in t.micro for number in m.flat(known=False)]
        known = [number for m in t.micro for number in m.flat(known=t.kind == "ok")]
        listed.append((t.began, INVOKE, t, asked))
        listed.append((t.ended, KINDS[t.kind], t, known))
    listed.sort(key=lambda row: row[0])
    processes = sorted({t.process for t in txns})
    return Rows(
        kind=np.array([kind for _, kind, _, _ in listed]),
        op=np.array([t.op for _, _, t, _ in listed]),
        process=np.array([processes.index(t.process) for _, _, t, _ in listed]),
        processes=processes,
        time=np.array([time for time, _, _, _ in listed]),
        row=np.arange(len(listed)),
        size=np.array([len(flat) for _, _, _, flat in listed]),
        flat=np.array([number for _, _, _, flat in listed for number in flat], dtype=np.int32),
    )


class Registers:
    """What transactions over registers show."""

    def __init__(self, txns: Sequence[Txn], session: str) -> None:
        self.written = {(m.key, m.value): t for t in txns for m in t.micro if m.is_write}
        self.txns = txns
        oks = [t for t in txns if t.kind == "ok"]
        self.reads = [(t, n) for t in oks for n, m in enumerate(t.micro) if m.read is not None]
        observed = {
            self.written[t.micro[n].key, t.micro[n].read[0]].op  # type: ignore[index]
            for t, n in self.reads
            if t.micro[n].read
        }
        self.committed = [
            t for t in txns if t.kind == "ok" or (t.kind == "info" and t.op in observed)
        ]
        self.sessions = {
            (a.op, b.op)
            for a in self.committed
            for b in self.committed
            if a is not b and self._is_before(a, b, session)
        }

    @staticmethod
    def _is_before(a: Txn, b: Txn, session: str) -> bool:
        if session and a.process == b.process and a.end <= b.began:
            return True
        return session == "realtime" and a.end < b.began

    def sources(self) -> Iterator[tuple[Txn, int, Txn | None]]:
        """Each read of another transaction's version: reader, key, writer."""
        for t, n in self.reads:
            m = t.micro[n]
            writer = self.written[m.key, m.read[0]] if m.read else None
            if writer is not t:
                yield t, m.key, writer

    def broken(self) -> set[str]:
        """The anomalies that need no order."""
        return {name for t, n in self.reads for name in self._broken_reads(t, n)}

    def _broken_reads(self, t: Txn, n: int) -> Iterator[str]:
        m = t.micro[n]
        before = [b for b in t.micro[:n] if b.key == m.key]
        if before:
            last = before[-1]
            known = (last.value,) if last.is_write else last.read
            if known is not None and known != m.read:
                yield "internal"
        if m.read:
            writer = self.written[m.key, m.read[0]]
            if writer.kind == "fail":
                yield "G1a"
            values = [w.value for w in writer.micro if w.is_write and w.key == m.key]
            if writer is t and all(b.value != m.read[0] for b in before):
                yield "future"
            if writer is not t and values[-1] != m.read[0]:
                yield "G1b"

    def version_orders(self) -> Iterator[dict[int, tuple[Txn, ...]]]:
        keys = sorted({m.key for t in self.committed for m in t.micro if m.is_write})
        writers = [
            [t for t in self.committed if any(m.is_write and m.key == key for m in t.micro)]
            for key in keys
        ]
        for chosen in product(*map(permutations, writers)):
            yield dict(zip(keys, chosen, strict=True))

    def allows(self, level: str) -> bool:
        """Whether some version order has no cycle that the level forbids."""
        return any(not self._is_forbidden(level, chosen) for chosen in self.version_orders())

    def _is_forbidden(self, level: str, chosen: dict[int, tuple[Txn, ...]]) -> bool:
        ww = {
            (a.op, b.op)
            for versions in chosen.values()
            for n, a in enumerate(versions)
            for b in versions[n + 1 :]
        }
        wr, rw = set(), set()
        for reader, key, writer in self.sources():
            versions = chosen.get(key, ())
            if writer is not None:
                if writer not in versions:
                    continue
                wr.add((writer.op, reader.op))
            later = versions if writer is None else versions[versions.index(writer) + 1 :]
            rw |= {(reader.op, t.op) for t in later if t is not reader}
        return _FORBIDDEN[level](self.sessions, wr, ww, rw)


def _reach(pairs: set[Pair]) -> set[Pair]:
    return set(nx.transitive_closure(nx.DiGraph(list(pairs))).edges)


def _is_cyclic(pairs: set[Pair]) -> bool:
    return not nx.is_directed_acyclic_graph(nx.DiGraph(list(pairs)))


def _then(first: set[Pair], second: set[Pair]) -> set[Pair]:
    return {(a, d) for a, b in first for c, d in second if b == c}


def _misses(rw: set[Pair], rest: set[Pair]) -> bool:
    return any((b, a) in rest for a, b in rw)


_FORBIDDEN = {
    "read-committed": lambda so, wr, ww, rw: _is_cyclic(so | wr | ww),
    "read-atomic": lambda so, wr, ww, rw: _is_cyclic(so | wr | ww) or _misses(rw, so | wr),
    "causal": lambda so, wr, ww, rw: _is_cyclic(so | wr | ww) or _misses(rw, _reach(so | wr)),
    "parallel-snapshot-isolation": lambda so, wr, ww, rw: (
        _is_cyclic(so | wr | ww) or _misses(rw, _reach(so | wr | ww))
    ),
    "snapshot-isolation": lambda so, wr, ww, rw: _is_cyclic(
        (so | wr | ww) | _then(so | wr | ww, rw)
    ),
    "serializable": lambda so, wr, ww, rw: _is_cyclic(so | wr | ww | rw),
}
LEVELS = tuple(_FORBIDDEN)
assert all(a != b for a, b in pairwise(LEVELS))
