"""What generated mutants change: each operator is a function from a function's tree to its changes.

* ``comparisons``   boundary, comparison
* ``guards``        dropped-guard, ignored-condition
* ``numbers``       off-by-one, time-out
* ``variables``     wrong-variable; types by name in ``name_types``
* ``stale_reads``   stale-read
* ``statements``    dropped-statement, missing-reset, skipped-effect
* ``sequences``     swapped-order

``OPERATORS`` has all of them by name. When a change counts as *effective* is in the docstring of each function.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.operators.comparisons import boundaries, comparisons
from nemesis.mutants.generated.operators.guards import dropped_guards, ignored_conditions
from nemesis.mutants.generated.operators.numbers import off_by_one, time_outs
from nemesis.mutants.generated.operators.sequences import swapped_statements
from nemesis.mutants.generated.operators.stale_reads import stale_reads
from nemesis.mutants.generated.operators.statements import (
    dropped_statements,
    missing_resets,
    skipped_effects,
)
from nemesis.mutants.generated.operators.variables import wrong_variables
from nemesis.mutants.generated.sources import Function

Operator = Callable[[Function], Iterator[Change]]

OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType(
    {
        "boundary": boundaries,
        "comparison": comparisons,
        "dropped-guard": dropped_guards,
        "ignored-condition": ignored_conditions,
        "dropped-statement": dropped_statements,
        "missing-reset": missing_resets,
        "skipped-effect": skipped_effects,
        "swapped-order": swapped_statements,
        "off-by-one": off_by_one,
        "time-out": time_outs,
        "wrong-variable": wrong_variables,
        "stale-read": stale_reads,
    }
)
