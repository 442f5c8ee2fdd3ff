"""Keys whose subkeys a client inserts one after the other, as Jepsen's workload sequential has them.

``write`` of a key inserts its subkeys. ``read`` is invoked with a key, and returns ``[key subkeys]``: a vector with nil
for each subkey that was not there. The events have −1 for nil.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nemesis.history.foreign.edn import is_vector
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.objects import Objects
from nemesis.history.foreign.operations import OK
from nemesis.history.foreign.vocabulary import Columns, WrongValue, keyed

NIL: Final = -1


class Subkeys(Objects):
    functions = frozenset({"write", "read"})
    takes = frozenset({"write"})
    returns_all = frozenset({"read"})

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        if f == "read" and type_ == OK:
            return _answer(value, names)
        if value is None:
            raise WrongValue(f"{f} without a key")
        return {"key": names.number(value)}

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        key = columns.get("key")
        if key is None:
            return None
        if (subkeys := columns.get("values")) is None:
            return names.value(key)
        return names.value(key), tuple(
            None if subkey == NIL else names.value(subkey) for subkey in subkeys
        )


def _answer(value: Any, names: Names) -> Columns:
    pair = keyed(value)
    if pair is None or pair[0] is None or not is_vector(pair[1]):
        raise WrongValue("read did not return a key and a vector of its subkeys")
    key, subkeys = pair
    return {
        "key": names.number(key),
        "values": [NIL if subkey is None else names.number(subkey) for subkey in subkeys],
    }
