"""monotonic-keys: operations agree on an order in which no key falls.

Each operation returns some keys with their values, and no value of a key ever falls. So an operation that returned a
smaller value of a key was before each one that returned a larger value of it. An order of all operations exists if and
only if these pairs have no cycle. Neither times nor processes are used, as in Elle's ``monotonic-key-graph``.
Smallest break: one operation returns 1 of key 0 and 2 of key 1, another one 2 of key 0 and 1 of key 1.

Only operations that succeeded count. A value of nil is smaller than every number.

How it is decided: between the operations with one value of a key and those with the next larger one there is a node,
so the graph has two edges for each returned value. A shortest cycle is shown.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.components import components
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed, answers
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import OK, Operations, in_history_order
from nemesis.history.sources import EventSource

FS: Final = ("read", "inc")
MAX_STARTS: Final = 64
"""A shortest cycle is searched for from this many operations of a component."""
NIL: Final = -(2**62)


class Link(NamedTuple):
    """The proof that one operation was before another one: a key, and its value in both."""

    before: int
    after: int
    key: int
    smaller: int
    larger: int


class MonotonicKeys(ObjectCheck):
    fs = FS
    lists = FS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (MONOTONIC_KEYS,)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        by, flat = answers(operations, lists)
        graph = _Graph.of(len(operations), by[::2], flat[::2], flat[1::2])
        cycles = graph.cycles()
        return conclude(
            MONOTONIC_KEYS,
            checked=int(np.count_nonzero(operations.outcome == OK)),
            findings=[_finding(operations, cycle) for cycle in cycles[:MAX_FINDINGS]],
            finding_count=len(cycles),
        )


@dataclass(frozen=True, slots=True)
class _Graph:
    """What operations returned: entries of equal length, by key, value and operation."""

    operations: int
    operation: Numbers
    key: Numbers
    value: Numbers
    rank: Numbers
    """A number for each value of a key; those of one key follow each other by size."""

    @classmethod
    def of(cls, operations: int, operation: Numbers, key: Numbers, value: Numbers) -> _Graph:
        permutation = np.lexsort((operation, value, key))
        operation, key, value = operation[permutation], key[permutation], value[permutation]
        is_new = (np.diff(key, prepend=key[:1]) != 0) | (np.diff(value, prepend=value[:1]) != 0)
        return cls(operations, operation, key, value, np.cumsum(is_new))

    def cycles(self) -> list[list[Link]]:
        """Return a shortest cycle of each component that has any."""
        if not len(self.rank):
            return []
        last = int(self.rank[-1])
        # After rank r comes node r, and behind it the operations of rank r + 1, if that is of the same key.
        first = np.searchsorted(self.rank, np.arange(last + 1))
        has_next = np.append(np.diff(self.key[first]) == 0, False)
        follows = (self.rank > 0) & has_next[np.maximum(self.rank - 1, 0)]
        node = self.operations + self.rank
        source = np.concatenate([self.operation, node[follows] - 1])
        target = np.concatenate([node, self.operation[follows]])
        size = self.operations + last + 1
        component = components(size, source, target, is_strong=True)
        counts = np.bincount(component[: self.operations])
        wanted = np.flatnonzero(counts > 1).tolist()
        return [self._cycle(np.flatnonzero(component[: self.operations] == c)) for c in wanted]

    def _cycle(self, members: Numbers) -> list[Link]:
        """Return a shortest cycle through some of the first members of a component."""
        entries = np.flatnonzero(np.isin(self.operation, members))
        has: dict[int, list[int]] = defaultdict(list)
        of_rank: dict[int, list[int]] = defaultdict(list)
        for entry in entries.tolist():
            has[int(self.operation[entry])].append(entry)
            of_rank[int(self.rank[entry])].append(entry)
        ranks = sorted(of_rank)
        following = dict(zip(ranks, [*ranks[1:], -1], strict=True))
        starts = members[:MAX_STARTS].tolist()
        found_cycles = [self._shortest(start, has, of_rank, following) for start in starts]
        return min((cycle for cycle in found_cycles if cycle), key=len)

    def _shortest(
        self,
        start: int,
        has: dict[int, list[int]],
        of_rank: dict[int, list[int]],
        following: dict[int, int],
    ) -> list[Link]:
        came: dict[int, Link] = {}
        reached: dict[int, int] = {}
        todo = deque([start])
        while todo:
            operation = todo.popleft()
            for entry in has[operation]:
                rank, key = following[int(self.rank[entry])], int(self.key[entry])
                first, end = rank, reached.get(key, len(self.rank))
                # All operations with larger values of the key are after it. From some rank on they are known.
                while 0 <= rank < end and self.key[of_rank[rank][0]] == key:
                    for other in of_rank[rank]:
                        after = int(self.operation[other])
                        if after in came:
                            continue
                        came[after] = Link(
                            operation,
                            after,
                            key,
                            int(self.value[entry]),
                            int(self.value[other]),
                        )
                        if after == start:
                            return _path(came, start)
                        todo.append(after)
                    rank = following[rank]
                reached[key] = min(end, first) if first >= 0 else end
        return []


def _path(came: dict[int, Link], start: int) -> list[Link]:
    links = [came[start]]
    while links[-1].before != start:
        links.append(came[links[-1].before])
    return links[::-1]


def _finding(operations: Operations, cycle: list[Link]) -> Finding:
    numbers = {link.before: f"R{number}" for number, link in enumerate(cycle, start=1)}
    names = list(numbers.values())
    sentence = f"{', '.join(names[:-1])} and {names[-1]} have no order in which no key falls."
    steps = [
        f"{name} was under way {phrases.when(operations, position)}."
        for position, name in numbers.items()
    ]
    steps += [
        f"{numbers[link.before]} returned {_name(link.smaller)} of key {link.key}, and {numbers[link.after]} "
        f"{_name(link.larger)}: {numbers[link.before]} was before {numbers[link.after]}."
        for link in cycle
    ]
    keys = sorted({link.key for link in cycle})
    shown = phrases.rows(operations, *numbers)
    return finding(
        "monotonic-keys", f"keys {', '.join(map(str, keys))}", sentence, *shown, steps=steps
    )


def _name(value: int) -> str:
    return "nil" if value == NIL else str(value)


MONOTONIC_KEYS: Final = Property(
    name="monotonic-keys",
    promise="Operations have an order in which the value of no key falls.",
    unit="operations",
    unknown="No operation succeeded, or events cannot be paired to operations.",
    source="Elle's monotonic-key-graph; Jepsen's monotonic workload of TiDB.",
    check=MonotonicKeys,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.MONOTONIC_KEYS,
)
