"""Operations whose values are about several keys at once: monotonic keys, and inserts that exclude each other.

``read`` and ``inc`` of monotonic keys return a map of keys to whole numbers, as Elle's ``monotonic-key-graph`` takes
it. ``insert`` has a key and two ids, of which the one says into which table it inserts (``jepsen.tests.adya``):

    {:f :read, :type :ok, :value {:x 1, :y 2}}
    {:f :insert, :type :ok, :value [7 [nil 3]]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nemesis.history.foreign.edn import is_vector
from nemesis.history.foreign.names import FIRST_NAME, Names
from nemesis.history.foreign.operations import OK
from nemesis.history.foreign.vocabulary import Columns, Plain, WrongValue, keyed

NIL: Final = -FIRST_NAME
"""A value that is nil, which is smaller than every number."""
ABSENT: Final = -1
"""An id that is nil."""


class MonotonicKeys(Plain):
    functions = frozenset({"read", "inc"})
    default = "read"

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        if type_ != OK:
            return {}
        if not isinstance(value, dict):
            raise WrongValue(f"{f} did not return a map of keys to numbers")
        flat: list[int] = []
        for key, number in value.items():
            is_number = type(number) is int and abs(number) < FIRST_NAME
            if not is_number and number is not None:
                raise WrongValue(f"{f} returned a value that is not a whole number")
            flat += (names.number(key), NIL if number is None else number)
        return {"values": flat}

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        flat = columns.get("values")
        if flat is None:
            return None
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {names.value(key): None if number == NIL else number for key, number in pairs}


class PredicateInserts(Plain):
    functions = frozenset({"insert"})

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:  # noqa: ARG002
        pair = keyed(value)
        if pair is None or pair[0] is None or not is_vector(pair[1]):
            raise WrongValue(f"{f} without a key and its ids")
        ids = [ABSENT if item is None else names.number(item) for item in pair[1]]
        return {"key": names.number(pair[0]), "values": ids}

    def may_be_silent(self, f: str) -> bool:  # noqa: ARG002
        return True

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        if (key := columns.get("key")) is None:
            return None
        ids = columns.get("values", ())
        return names.value(key), tuple(None if i == ABSENT else names.value(i) for i in ids)
