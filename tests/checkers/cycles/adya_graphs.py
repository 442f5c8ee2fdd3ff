"""PL-2+ by Adya's definition: some order of the versions has neither G1 nor G-single. For a handful of transactions.

Every order of the writers of each key is tried. The graph of an order has an edge from each writer to the next one
(ww), from a writer to its readers (wr), and from a reader to the writer of the next version (rw). G-single is a cycle
with exactly one rw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

import networkx as nx

from tests.checkers.cycles.brute_force import Txn

Read = tuple[Txn, int, tuple[int, ...]]
"""Reader, key, and what it returned."""
Versions = dict[int, tuple[Txn, ...]]
"""The writers of each key."""


def is_consistent_view(txns: Sequence[Txn], *, lists: bool) -> bool:
    """Whether PL-2+ allows transactions none of whose reads is wrong by itself."""
    writer = {(m.key, m.value): t for t in txns for m in t.micro if m.value is not None}
    reads = [
        (t, m.key, m.read) for t in txns if t.kind == "ok" for m in t.micro if m.read is not None
    ]
    observed = {writer[key, value] for _, key, read in reads for value in read}
    committed = [t for t in txns if t.kind == "ok" or (t.kind == "info" and t in observed)]
    return any(
        not _has_anomaly(versions, reads, writer)
        for versions in _sequences(committed, reads, lists=lists)
    )


def _sequences(
    committed: Sequence[Txn], reads: Sequence[Read], *, lists: bool
) -> Iterator[Versions]:
    keys = sorted({m.key for t in committed for m in t.micro})
    choices = []
    for key in keys:
        writers = [t for t in committed if any(m.key == key and m.is_write for m in t.micro)]
        listed = [read for _, other, read in reads if other == key] if lists else []
        choices.append([o for o in permutations(writers) if all(_shows(o, key, r) for r in listed)])
    for chosen in product(*choices):
        yield dict(zip(keys, chosen, strict=True))


def _shows(writers: Sequence[Txn], key: int, read: tuple[int, ...]) -> bool:
    """Whether a list is a beginning of what these transactions append in this order."""
    appended = [m.value for t in writers for m in t.micro if m.key == key and m.value is not None]
    return tuple(appended[: len(read)]) == read


def _has_anomaly(
    versions: Versions, reads: Sequence[Read], writer: dict[tuple[int, int], Txn]
) -> bool:
    """Whether a graph has a cycle without rw, or with one."""
    forward: nx.DiGraph[Txn] = nx.DiGraph()
    missed: list[tuple[Txn, Txn]] = []
    for writers in versions.values():
        forward.add_edges_from(pairwise(writers))
    for reader, key, read in reads:
        source = writer[key, read[-1]] if read else None
        writers = versions[key]
        later = writers[writers.index(source) + 1 :] if source in writers else writers
        if source not in (None, reader):
            forward.add_edge(source, reader)
        missed += [(reader, t) for t in later[:1] if t is not reader]
    if not nx.is_directed_acyclic_graph(forward):
        return True
    return any(a in forward and b in forward and nx.has_path(forward, b, a) for a, b in missed)
