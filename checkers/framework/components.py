"""Connected components of a graph: by scipy, or in Python if it is small or scipy is not installed.

Both give each node a number that is equal for the nodes of one component. Which number it is does not matter.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

import numpy as np

from nemesis.checkers.framework.arrays import Numbers

SMALL: Final = 300
"""Nodes and edges that Python walks faster than scipy makes a graph of them."""


def components(count: int, source: Numbers, target: Numbers, *, is_strong: bool) -> Numbers:
    """Return for each of ``count`` nodes the number of its component, strongly or weakly connected."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    if count + len(source) <= SMALL or find_spec("scipy") is None:
        if not is_strong:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        return strong_components(count, source, target)
    return _by_scipy(count, source, target, is_strong=is_strong)


def strong_components(count: int, source: Numbers, target: Numbers) -> Numbers:
    """Return the strongly connected components by Tarjan's algorithm, with a stack of its own instead of recursion."""
    by_source = np.argsort(source, kind="stable")
    targets = target[by_source].tolist()
    first = np.searchsorted(source[by_source], np.arange(count + 1)).tolist()
    following = first[:-1]  # of each node, the next edge to walk
    index = [-1] * count  # when the walk reached a node
    low = [0] * count  # the earliest node on the stack that it reaches
    label = [-1] * count
    stack: list[int] = []
    reached = labels = 0
    for root in range(count):
        if index[root] >= 0:
            continue
        path = [root]
        while path:
            node = path[-1]
            if index[node] < 0:
                index[node] = low[node] = reached
                reached += 1
                stack.append(node)
            if following[node] < first[node + 1]:
                other = targets[following[node]]
                following[node] += 1
                if index[other] < 0:
                    path.append(other)
                elif label[other] < 0:  # still on the stack: the edge leads back
                    low[node] = min(low[node], index[other])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if (
                low[node] == index[node]
            ):  # nothing before it is reached: the stack above it is its component
                while label[node] < 0:
                    label[stack.pop()] = labels
                labels += 1
    return np.array(label, dtype=np.int64)


def _by_scipy(count: int, source: Numbers, target: Numbers, *, is_strong: bool) -> Numbers:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(source), dtype=np.int8)
    graph = csr_array((ones, (source, target)), shape=(count, count))
    if is_strong:
        _, labels = connected_components(graph, connection="strong")
    else:
        _, labels = connected_components(graph, connection="weak")
    return np.asarray(labels, dtype=np.int64)
