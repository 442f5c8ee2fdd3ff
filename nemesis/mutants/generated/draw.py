"""Which mutants there are, and a random draw of them that a seed repeats.

Each operator gets the same share: the draw takes one mutant of each operator in turn, and skips an operator that has no
more. Otherwise the operators with the most positions (wrong variables) would decide the score. The mutants of one
operator come in the sequence of a hash of seed and mutant. So a smaller draw is the beginning of a larger one, and a
change of one function changes the draw little.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from nemesis.mutants.generated.mutation import Mutation
from nemesis.mutants.generated.operators import OPERATORS
from nemesis.mutants.generated.planting import is_plantable
from nemesis.mutants.generated.sources import DEFAULT_MODULES, Function, functions, module_names


def all_mutations(globs: Sequence[str] = DEFAULT_MODULES) -> list[Mutation]:
    """Return every mutant of the modules that match; raises ``UsageError`` for a glob without a match."""
    return [
        mutation
        for module in module_names(globs)
        for function in functions(module)
        for mutation in mutations_of(function)
    ]


def mutations_of(function: Function) -> Iterator[Mutation]:
    """Yield every mutant of a function, operator by operator."""
    text = ast.unparse(function.node)
    for operator, changes in OPERATORS.items():
        for index, change in enumerate(changes(function)):
            yield Mutation(
                module=function.module,
                function=function.qualname,
                function_line=function.first_line,
                line=change.node.lineno,
                unit=function.unit_of(change.node),
                operator=operator,
                index=index,
                function_text=text,
                change=change,
            )


def drawn(mutations: Iterable[Mutation], *, seed: int, count: int) -> list[Mutation]:
    """Return ``count`` mutants in the sequence of the draw; fewer when there are not as many that can be planted."""
    ranked: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        ranked[mutation.operator].append(mutation)
    queues = deque(
        deque(sorted(ranked[operator], key=lambda m: m.rank(seed)))
        for operator in OPERATORS
        if ranked[operator]
    )
    result: list[Mutation] = []
    while queues and len(result) < count:
        queue = queues.popleft()
        while queue:
            mutation = queue.popleft()
            if is_plantable(mutation):
                result.append(mutation)
                break
        if queue:
            queues.append(queue)
    return result
