"""Registers, mutexes, sets and queues: operations on one object, or on one of several.

With several objects a value is a tuple ``[key value]``, as ``jepsen.independent`` writes it. So a plain value of these
workloads is no vector of two. The key may also be an entry of its own, ``:key``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from nemesis.history.foreign.edn import EdnSet, is_vector, same
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operations import OK, Operation
from nemesis.history.foreign.pairs import Pair
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.foreign.vocabulary import (
    Columns,
    Part,
    Plain,
    WrongValue,
    keyed,
    numbers,
)

KEY: Final = "key"
"""The entry of an operation that states its key."""


class Objects(Plain):
    """What the kinds of objects share: the key, and which functions take or return what."""

    takes: frozenset[str]
    """Functions that are invoked with one value."""
    returns: frozenset[str] = frozenset()
    """Functions that return one value, or nil."""
    returns_all: frozenset[str] = frozenset()
    """Functions that return all elements."""
    exchanges: frozenset[str] = frozenset()
    """Functions that are invoked with an old and a new value."""

    def __init__(self) -> None:
        self._has_keys: bool | None = None
        """Whether operations are of one of several objects, as the first that tells it does."""

    def parts(self, pair: Pair, names: Names, problems: Problems) -> list[Part]:
        """As of all; what is of the only object and what is of one of several do not go together."""
        (part,) = super().parts(self._with_keys(pair), names, problems)
        ends = [(part.invoke, pair.invoke)]
        if pair.completion is not None and part.completion is not None:
            ends += [(part.completion, pair.completion)] * (part.completion["kind"] == OK)
        for columns, operation in ends:
            has_key = "key" in columns
            if self._has_keys is None:
                self._has_keys = has_key
            if has_key != self._has_keys:
                problems.note(Damage.KEYED, operation.line)
        return [part]

    def _with_keys(self, pair: Pair) -> Pair:
        """The operation with its key beside its values, if an entry of one of its ends states the key."""
        ends = [end for end in (pair.invoke, pair.completion) if end is not None]
        keys = [end.other[KEY] for end in ends if end.other and end.other.get(KEY) is not None]
        if not keys:
            return pair
        invoke, *completion = (self._with_key(end, keys[0]) for end in ends)
        return Pair(invoke, completion[0] if completion else None, pair.is_alone)

    def _with_key(self, operation: Operation, key: Any) -> Operation:
        value, f = operation.value, self.function_of(operation) or operation.f
        is_silent = value is None and operation.type == OK and self.may_be_silent(f)
        stated, _ = self._split(f, value)
        if is_silent or (stated is not None and same(stated[0], key)):
            return operation
        return structs.replace(operation, value=(key, value))

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        key, value = self._split(f, value)
        columns: Columns = {} if key is None else {"key": names.number(key[0])}
        if f in self.takes:
            if value is None:
                raise WrongValue(f"{f} without a value")
            columns["value"] = names.number(value)
        elif f in self.exchanges:
            pair = keyed(value)
            if pair is None or None in pair:
                raise WrongValue(f"{f} without an old and a new value")
            columns["values"] = numbers(pair, names)
        elif type_ == OK and f in self.returns and value is not None:
            columns["value"] = names.number(value)
        elif type_ == OK and f in self.returns_all:
            if not is_collection(value):
                raise WrongValue(f"{f} did not return a collection")
            columns["values"] = numbers(value, names)
        return columns

    def may_be_silent(self, f: str) -> bool:
        return f in self.takes or f in self.exchanges

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        value: Any = None
        if (number := columns.get("value")) is not None:
            value = names.value(number)
        elif (items := columns.get("values")) is not None:
            value = tuple(map(names.value, items))
        key = columns.get("key")
        return value if key is None else (names.value(key), value)

    def _split(self, f: str, value: Any) -> tuple[tuple[Any] | None, Any]:
        """The key, in a tuple, and the value of it; None if there is no key."""
        pair = keyed(value)
        if pair is None:
            return None, value
        is_plain = (f in self.exchanges and keyed(pair[1]) is None) or (
            f in self.returns_all and pair[1] is not None and not is_collection(pair[1])
        )
        return (None, value) if is_plain else ((pair[0],), pair[1])


def is_collection(value: Any) -> bool:
    """Whether a value is a set, a vector or a list."""
    return isinstance(value, EdnSet) or is_vector(value)


class Register(Objects):
    functions = frozenset({"read", "write"})
    takes = frozenset({"write"})
    returns = frozenset({"read"})


class CasRegister(Register):
    functions = frozenset({"read", "write", "cas"})
    exchanges = frozenset({"cas"})


class Mutex(Objects):
    functions = frozenset({"acquire", "release"})
    takes = frozenset()

    def may_be_silent(self, f: str) -> bool:
        return f in self.functions


class Set(Objects):
    functions = frozenset({"add", "read"})
    takes = frozenset({"add"})
    returns_all = frozenset({"read"})


class Inserts(Objects):
    """Values that are inserted, and all read together: a set whose additions are called writes."""

    functions = frozenset({"write", "read"})
    takes = frozenset({"write"})
    returns_all = frozenset({"read"})


class Queue(Objects):
    functions = frozenset({"enqueue", "dequeue", "drain"})
    takes = frozenset({"enqueue"})
    returns = frozenset({"dequeue"})
    returns_all = frozenset({"drain"})


class FifoQueue(Queue):
    """A queue of which the order counts: a drain states in which order it dequeued its values."""

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        columns = super().columns(f, type_, value, names)
        _, returned = self._split(f, value)
        if f == "drain" and type_ == OK and isinstance(returned, EdnSet) and len(returned) > 1:
            raise WrongValue("a drain returned a set, which does not state an order")
        return columns
