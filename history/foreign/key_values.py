"""A key-value store of texts: ``put``, ``append`` and ``get``, as Porcupine's test data have them.

The key is an entry of its own, or key and value are a tuple as for other objects; without either there is one text.

    {:process 0, :type :invoke, :f :append, :key "4", :value "x"}
    {:process 0, :type :invoke, :f :append, :value ["4" "x"]}

An absent key is the empty text, so ``get`` returns nil or ``""``. The events have the characters of a text as numbers
(Unicode code points), because ``append`` joins texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemesis.history.foreign.edn import Keyword, Symbol
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.objects import Objects
from nemesis.history.foreign.operations import OK
from nemesis.history.foreign.vocabulary import Columns, WrongValue


class KeyValues(Objects):
    functions = frozenset({"put", "append", "get"})
    takes = frozenset({"put", "append"})
    returns_all = frozenset({"get"})

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        key, text = self._split(f, value)
        columns: Columns = {} if key is None else {"key": names.number(key[0])}
        if f == "get":
            if type_ == OK:
                columns["values"] = _characters(f, "" if text is None else text)
        else:
            columns["values"] = _characters(f, text)
        return columns

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        characters = columns.get("values")
        text = None if characters is None else "".join(map(chr, characters))
        key = columns.get("key")
        return text if key is None else (names.value(key), text)

    def _split(self, f: str, value: Any) -> tuple[tuple[Any] | None, Any]:  # noqa: ARG002
        is_keyed = isinstance(value, tuple | list) and len(value) == 2
        return ((value[0],), value[1]) if is_keyed else (None, value)


def _characters(f: str, text: Any) -> list[int]:
    if not isinstance(text, str) or isinstance(text, Keyword | Symbol):
        raise WrongValue(f"{f} without a text")
    return list(map(ord, text))
