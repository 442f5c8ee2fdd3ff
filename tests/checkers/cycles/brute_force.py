"""Transactions judged by trying everything: all orders, all cycles. For a handful of transactions.

Written from the definitions, without looking at the checkers: dictionaries and loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

import networkx as nx

from nemesis.checkers.breaks.transactions import Micro


@dataclass(frozen=True)
class Txn:
    op: int
    micro: tuple[Micro, ...]
    kind: str
    """``ok``, ``fail``, ``info``."""
    began: int
    ended: int
    process: str

    @property
    def end(self) -> float:
        return self.ended if self.kind == "ok" else float("inf")


Read = tuple[Txn, tuple[int, ...]]
Written = dict[tuple[int, int], Txn]
Add = Callable[[Txn, Txn, str], None]


def serializable(txns: Sequence[Txn], sequence: str, *, lists: bool) -> bool:
    """Whether some order explains every read, one that keeps that of processes or real time if so asked."""
    sure = [txn for txn in txns if txn.kind == "ok"]
    perhaps = [txn for txn in txns if txn.kind == "info"]
    for count in range(len(perhaps) + 1):
        for chosen in combinations(perhaps, count):
            for attempt in permutations([*sure, *chosen]):
                if _keeps(attempt, sequence) and _explains(attempt, lists=lists):
                    return True
    return False


def _keeps(attempt: Sequence[Txn], sequence: str) -> bool:
    for a, b in combinations(attempt, 2):
        if sequence == "realtime" and b.end < a.began:
            return False
        if sequence and b.process == a.process and b.end <= a.began:
            return False
    return True


def _explains(attempt: Sequence[Txn], *, lists: bool) -> bool:
    state: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for txn in attempt:
        for micro in txn.micro:
            if micro.value is not None:
                state[micro.key] = (*state[micro.key], micro.value) if lists else (micro.value,)
            elif txn.kind == "ok" and micro.read != state[micro.key]:
                return False
    return True


def cycle_names(edges: nx.MultiDiGraph[int]) -> set[str]:
    """The name of every simple cycle, by the kinds of its edges: each choice of parallel edges is a cycle."""
    simple: nx.DiGraph[int] = nx.DiGraph(edges)
    names: set[str] = set()
    for nodes in nx.simple_cycles(simple):
        pairs = list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
        kinds = [{data["kind"] for data in edges[a][b].values()} for a, b in pairs]
        for chosen in _choices(kinds):
            names.add(_name(chosen))
    return names


def _choices(kinds: Sequence[Iterable[str]]) -> Iterator[tuple[str, ...]]:
    if not kinds:
        yield ()
        return
    for kind in sorted(kinds[0]):
        for rest in _choices(kinds[1:]):
            yield (kind, *rest)


def _name(kinds: tuple[str, ...]) -> str:
    rw = kinds.count("rw")
    if rw == 0:
        name = "G1c" if "wr" in kinds else "G0"
    elif rw == 1:
        name = "G-single"
    elif any(a == b == "rw" for a, b in zip(kinds, (*kinds[1:], kinds[0]), strict=True)):
        name = "G2-item"
    else:
        name = "G-nonadjacent"
    if "realtime" in kinds:
        return f"{name}-realtime"
    return f"{name}-process" if "process" in kinds else name


def dependencies(txns: Sequence[Txn], *, lists: bool) -> nx.MultiDiGraph[int]:
    """All dependencies, with the orders of processes and real time, of transactions whose reads agree on an order."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    written = {(m.key, m.value): t for t in txns for m in t.micro if m.value is not None}
    reads = [
        (t, m.key, m.read) for t in txns if t.kind == "ok" for m in t.micro if m.read is not None
    ]
    observed = {written[key, value].op for _, key, read in reads for value in read}
    committed = [t for t in txns if t.kind == "ok" or (t.kind == "info" and t.op in observed)]

    def add(a: Txn, b: Txn, kind: str) -> None:
        if a.op != b.op and a in committed and b in committed:
            graph.add_edge(a.op, b.op, kind=kind)

    for t, key, read in reads:
        if read:
            add(written[key, read[-1]], t, "wr")
    for key in sorted({m.key for t in txns for m in t.micro}):
        of_key = [(t, read) for t, k, read in reads if k == key]
        if lists:
            _list_order(key, of_key, committed, written, add)
        else:
            _register_order(key, of_key, committed, written, add)
    for a in committed:
        for b in committed:
            if a.end < b.began:
                add(a, b, "realtime")
            if a.process == b.process and a.end <= b.began:
                add(a, b, "process")
    return graph


def _list_order(
    key: int, of_key: list[Read], committed: list[Txn], written: Written, add: Add
) -> None:
    if not of_key:
        return
    longest = max((read for _, read in of_key), key=len)
    values = [value for value in longest if written[key, value] in committed]
    for a, b in pairwise(values):
        add(written[key, a], written[key, b], "ww")
    unread = [
        written[key, m.value]
        for t in committed
        for m in t.micro
        if m.value is not None and m.key == key and m.value not in longest
    ]
    for t in unread:
        if values:
            add(written[key, values[-1]], t, "ww")
    for reader, read in of_key:
        if read and written[key, read[-1]] == reader:
            continue
        rest = [
            written[key, value]
            for value in longest[len(read) :]
            if written[key, value] in committed
            and not (read and written[key, value] == written[key, read[-1]])
        ]
        halfway = written[key, read[-1]] if read else None
        for t in rest[:1] if rest else unread:
            if t != halfway:
                add(reader, t, "rw")


def _register_order(
    key: int, of_key: list[Read], committed: list[Txn], written: Written, add: Add
) -> None:
    successors: dict[tuple[int, ...], list[Txn]] = defaultdict(list)
    blind = []
    for t in committed:
        on_key = [m for m in t.micro if m.key == key]
        if not any(m.is_write for m in on_key):
            continue
        if on_key[0].is_write or t.kind != "ok":
            blind.append(t)
        elif on_key[0].read is not None and not (
            on_key[0].read and written[key, on_key[0].read[0]] == t
        ):
            successors[on_key[0].read].append(t)
            if on_key[0].read:
                add(written[key, on_key[0].read[0]], t, "ww")
    for reader, read in of_key:
        if read and written[key, read[0]] == reader:
            continue
        for t in [*successors[read], *([] if read else blind)]:
            add(reader, t, "rw")
