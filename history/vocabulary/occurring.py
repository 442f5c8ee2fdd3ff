"""Which columns the events of a file of JSON lines can have, from the kinds that occur in it.

A reader of JSON spends its time on each column of each row, absent ones included. Most files have few of all kinds of
events, and each kind has few of all columns. To search for kinds costs a tenth of what is saved.
"""

from __future__ import annotations

import re
from typing import Final

from nemesis.history.events import Kind
from nemesis.history.vocabulary.checking import MODULES
from nemesis.history.vocabulary.declaring import declarations

assert MODULES, "the modules that declare the kinds have to be imported"

_KIND: Final = re.compile(rb'"kind":"([^"]+)"')
_FUNCTION: Final = re.compile(rb'"f":"([^"]+)"')
_OPERATIONS: Final = frozenset(
    kind.value.encode() for kind in (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
)
_COLUMNS: Final = tuple(
    (item.kind.value.encode(), item.f and item.f.encode(), frozenset(item.view.__struct_fields__))
    for item in declarations()
)
"""Kind, function if it is an operation of a client, and the columns, of each declaration."""


def columns_in(lines: bytes) -> frozenset[str]:
    """Return the columns that the kinds of events in these lines declare.

    A line may have others: the events of other systems' histories, of older versions, and damaged ones.
    """
    kinds = frozenset(_KIND.findall(lines))
    functions = frozenset(() if kinds.isdisjoint(_OPERATIONS) else _FUNCTION.findall(lines))
    return frozenset().union(
        *(
            columns
            for kind, function, columns in _COLUMNS
            if kind in kinds and (function is None or function in functions)
        )
    )
