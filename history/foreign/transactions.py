"""Transactions over lists that are appended to, and over registers, as Elle has them.

A transaction's value is a vector of micro-operations ``[f key value]``. The events have them flat, each as code, key,
count and elements; a read is of count −1 where nobody was told what it returned. A list that was read as nil is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from nemesis.history.foreign.edn import Keyword, is_vector
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operations import INVOKE, OK, Operation
from nemesis.history.foreign.vocabulary import Columns, Plain, WrongValue, numbers

READ: Final = 0
WRITE: Final = 1
UNKNOWN: Final = -1


class Transactions(Plain):
    functions = frozenset({"txn"})
    default = "txn"
    write: str
    """The function that writes."""

    def function_of(self, operation: Operation) -> str | None:
        """``txn`` for all operations whose values are micro-operations, whatever their function is called."""
        if operation.f in ("", *self.functions):
            return self.default
        value = operation.value
        is_transaction = is_vector(value) and value and all(map(self._is_micro, value))
        return self.default if is_transaction else None

    def _is_micro(self, micro: Any) -> bool:
        try:
            function, _, _ = _entries(micro)
        except WrongValue:
            return False
        return function in ("r", self.write)

    def elements(self, read: Any) -> Sequence[Any]:
        """Return what was read as a sequence; raises ``WrongValue``."""
        raise NotImplementedError

    def read(self, elements: Sequence[Any]) -> Any:
        """Return what was read from the sequence of it."""
        raise NotImplementedError

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:  # noqa: ARG002
        if not is_vector(value):
            raise WrongValue("no vector of micro-operations")
        flat: list[int] = []
        for micro in value:
            function, key, content = _entries(micro)
            if function == self.write:
                if content is None:
                    raise WrongValue(f"{self.write} without a value")
                flat += (WRITE, names.number(key), 1, names.number(content))
            elif function != "r":
                raise WrongValue(f"a micro-operation is neither r nor {self.write}")
            elif type_ != OK:
                flat += (READ, names.number(key), UNKNOWN)
            else:
                elements = numbers(self.elements(content), names)
                flat += (READ, names.number(key), len(elements), *elements)
        return {"micro_operations": flat}

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        flat = columns.get("micro_operations") or ()
        micros = []
        position = 0
        while position < len(flat):
            code, key, count = flat[position : position + 3]
            position += 3
            elements = tuple(map(names.value, flat[position : position + max(count, 0)]))
            position += len(elements)
            if code == WRITE:
                micros.append((Keyword(self.write), names.value(key), elements[0]))
            else:
                content = None if count == UNKNOWN else self.read(elements)
                micros.append((Keyword("r"), names.value(key), content))
        return tuple(micros)


def _entries(micro: Any) -> tuple[Any, Any, Any]:
    """Return function, key and value of a micro-operation; ``[:r k]`` has the value nil, as in Elle."""
    is_read = is_vector(micro) and len(micro) == 2 and micro[0] == "r"
    entries = (*micro, None) if is_read else micro
    if not is_vector(entries) or len(entries) != 3 or entries[1] is None:
        raise WrongValue("a micro-operation is not [f key value]")
    function, key, content = entries
    return function, key, content


class ListAppend(Transactions):
    write = "append"

    def elements(self, read: Any) -> Sequence[Any]:
        if read is None:
            return ()
        if not is_vector(read):
            raise WrongValue("a read did not return a list")
        return tuple(read)

    def read(self, elements: Sequence[Any]) -> Any:
        return tuple(elements)


class RwRegister(Transactions):
    write = "w"

    def elements(self, read: Any) -> Sequence[Any]:
        return () if read is None else (read,)

    def read(self, elements: Sequence[Any]) -> Any:
        return elements[0] if elements else None


class MultiRegister(RwRegister):
    """Transactions as Knossos' ``multi-register`` has them: ``:read`` and ``:write``; a read of nil says nothing."""

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        if not is_vector(value):
            raise WrongValue("no vector of micro-operations")
        flat: list[int] = []
        for micro in value:
            name, key, content = _entries(micro)
            function = SHORT.get(name, name)
            is_unknown = function == "r" and content is None
            said = ((function, key, content),)
            part = super().columns(f, INVOKE if is_unknown else type_, said, names)
            flat += part["micro_operations"]
        return {"micro_operations": flat}

    def _is_micro(self, micro: Any) -> bool:
        is_named = is_vector(micro) and len(micro) > 0 and micro[0] in SHORT
        return super()._is_micro((SHORT[micro[0]], *micro[1:]) if is_named else micro)


SHORT: Final = MappingProxyType({"read": "r", "write": "w"})
"""Elle's names of Knossos' micro-operations."""
