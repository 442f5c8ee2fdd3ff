"""Kernels that walk graphs: earliest moments, and shortest walks, which look no further than the best that is known.

Limits: a search for a cycle stops after ``MAX_STEPS`` steps, with the best one found until then.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled

MAX_STEPS: Final = 50_000_000
"""Edges looked at in one search."""


@compiled
def adjacency(count: int, source: Numbers) -> tuple[Numbers, Numbers]:
    """Edges by source: those of ``n`` are ``edge[first[n]:first[n + 1]]``, in their order."""
    first = np.zeros(count + 1, np.int64)
    for n in source:
        first[n + 1] += 1
    for n in range(count):
        first[n + 1] += first[n]
    next_free = first[:-1].copy()
    edge = np.empty(len(source), np.int64)
    for n in range(len(source)):
        edge[next_free[source[n]]] = n
        next_free[source[n]] += 1
    return first, edge


@compiled
def earliest_times(
    count: int, source: Numbers, target: Numbers, began: Numbers
) -> tuple[Numbers, Mask]:
    """For each node its earliest time, and whether it could be taken away; without the latter it has none."""
    first, edge = adjacency(count, source)
    waits_for = np.zeros(count, np.int64)
    for n in target:
        waits_for[n] += 1
    earliest = began.copy()
    taken = np.zeros(count, np.bool_)
    stack = np.empty(count, np.int64)
    for start in range(count):
        if waits_for[start] or taken[start]:
            continue
        stack[0] = start
        height = 1
        while height:
            height -= 1
            node = stack[height]
            taken[node] = True
            for i in range(first[node], first[node + 1]):
                other = target[edge[i]]
                earliest[other] = max(earliest[other], earliest[node])
                waits_for[other] -= 1
                if waits_for[other] == 0 and other < start:
                    stack[height] = other
                    height += 1
    return earliest, taken


@compiled
def shortest_cycle(
    count: int, source: Numbers, target: Numbers, starts: Numbers, allowed: Mask
) -> Numbers:
    """Return the edges of a shortest cycle through one of the edges ``starts``, from that edge on; empty if none was
    found. All other edges of it are ``allowed``.
    """
    first, edge = adjacency(count, source)
    visited_for = np.full(count, -1, np.int64)
    reached_by = np.empty(count, np.int64)
    queue = np.empty(count, np.int64)
    depth = np.empty(count, np.int64)
    best = np.empty(0, np.int64)
    steps = 0
    for number in range(len(starts)):
        start = starts[number]
        goal = source[start]
        queue[0] = target[start]
        visited_for[target[start]] = number
        depth[target[start]] = 1
        head, tail = 0, 1
        while head < tail and visited_for[goal] != number:
            node = queue[head]
            head += 1
            if len(best) and depth[node] + 1 >= len(best):
                break
            for i in range(first[node], first[node + 1]):
                steps += 1
                other = target[edge[i]]
                if allowed[edge[i]] and visited_for[other] != number:
                    visited_for[other] = number
                    reached_by[other] = edge[i]
                    depth[other] = depth[node] + 1
                    queue[tail] = other
                    tail += 1
        if visited_for[goal] == number:
            best = np.empty(depth[goal], np.int64)
            best[0] = start
            node = goal
            for i in range(depth[goal] - 1, 0, -1):
                best[i] = reached_by[node]
                node = source[best[i]]
        if steps > MAX_STEPS or len(best) == 2:
            break
    return best


@compiled
def shortest_from_later(
    first: Numbers,
    edge: Numbers,
    source: Numbers,
    target: Numbers,
    ends: Numbers,
    began: Numbers,
    after: int,
    process: Numbers,
    other_than: int,
) -> Numbers:
    """Return the edges of a shortest walk to one of the states ``ends`` from a transaction that began later than
    ``after`` and is not of process ``other_than``; empty if there is none. Transactions are the states below
    ``len(began)``; ``first`` and ``edge`` are the adjacency of the edges turned round.
    """
    count = len(first) - 1
    reached_by = np.full(count, -1, np.int64)
    queue = np.empty(count, np.int64)
    is_visited = np.zeros(count, np.bool_)
    tail = 0
    for state in ends:
        queue[tail] = state
        is_visited[state] = True
        tail += 1
    head = 0
    while head < tail:
        state = queue[head]
        head += 1
        if state < len(began) and began[state] > after and process[state] != other_than:
            length = 0
            node = state
            while reached_by[node] >= 0:
                node = target[reached_by[node]]
                length += 1
            walk = np.empty(length, np.int64)
            for i in range(length):
                walk[i] = reached_by[state]
                state = target[walk[i]]
            return walk
        for i in range(first[state], first[state + 1]):
            other = source[edge[i]]
            if not is_visited[other]:
                is_visited[other] = True
                reached_by[other] = edge[i]
                queue[tail] = other
                tail += 1
    return np.empty(0, np.int64)
