"""Counters, generators of unique ids, and banks, as Jepsen's workloads have them.

A counter has ``add`` of a number and ``read``; it only grows. Maelstrom's counters mark some reads as final, by
``:final? true`` in the completion: in the events their function is ``final-read``. Only a PN-counter may have negative
amounts. Each counter may be read as a negative number, which stands for itself in the events. ``generate`` returns an
id, of any kind: a vector of two is an id here, never key and value. A bank's ``read`` returns a map of accounts to
balances, and ``transfer`` moves an amount ``{:from a, :to b, :amount n}``. The events have the map flat, each account
and its balance, which may be negative. A balance that is nil is kept as such; one that is neither nil nor a whole
number cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import structs

from nemesis.history.foreign.edn import Keyword
from nemesis.history.foreign.names import FIRST_NAME, Names
from nemesis.history.foreign.objects import Objects
from nemesis.history.foreign.operations import OK, Operation
from nemesis.history.foreign.pairs import Pair
from nemesis.history.foreign.problems import Problems
from nemesis.history.foreign.vocabulary import Columns, Part, WrongValue, is_aside

MAX_AMOUNT: Final = 2**40
"""Amounts are below, so that the sum of all amounts of a history can be computed."""
FINAL: Final = "final?"
"""The entry of an operation that marks a read after which no add may be missing."""
FINAL_READ: Final = "final-read"
TRANSFER: Final = ("from", "to", "amount")


class Counter(Objects):
    functions = frozenset({"add", "read"})
    takes = frozenset({"add"})
    returns = frozenset({"read"})

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        if f == "read" and type_ == OK:
            key, value = self._split(f, value)
            columns: Columns = {} if key is None else {"key": names.number(key[0])}
            columns["value"] = _number_read(value)
            return columns
        columns = super().columns(f, type_, value, names)
        number = columns.get("value")
        if f == "add" and number is not None and number >= MAX_AMOUNT:
            raise WrongValue(f"add of what is not a whole number from 0 to {MAX_AMOUNT - 1}")
        return columns

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        key, value = columns.get("key"), columns.get("value")
        return value if key is None else (names.value(key), value)


class PnCounter(Objects):
    functions = frozenset({"add", "read"})
    takes = frozenset({"add"})
    smallest = -MAX_AMOUNT + 1
    """The smallest amount of an add."""

    def function_of(self, operation: Operation) -> str | None:
        is_final = operation.f == "read" and _is_final(operation)
        return FINAL_READ if is_final else super().function_of(operation)

    def parts(self, pair: Pair, names: Names, problems: Problems) -> list[Part]:
        # Of a client with several reads under way the completion may be of another read than the invocation.
        if pair.completion is not None:
            invoke = _marked(pair.invoke, is_final=_is_final(pair.completion))
            pair = Pair(invoke, pair.completion, pair.is_alone)
        return super().parts(pair, names, problems)

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        key, value = self._split(f, value)
        columns: Columns = {} if key is None else {"key": names.number(key[0])}
        number = _amount(value)
        if f == "add":
            if number is None or not self.smallest <= number < MAX_AMOUNT:
                limits = f"from {self.smallest} to {MAX_AMOUNT - 1}"
                raise WrongValue(f"add of a value that is not a whole number {limits}")
            columns["value"] = number
        elif type_ == OK:
            columns["value"] = _number_read(value)
        return columns

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        key = columns.get("key")
        value = columns.get("value")
        return value if key is None else (names.value(key), value)

    def operations(self, events: Iterable[Mapping[str, Any]], names: Names) -> Iterable[Operation]:
        rows = list(events)
        for columns, operation in zip(rows, super().operations(rows, names), strict=True):
            if columns["f"] == FINAL_READ and not is_aside(columns):
                read = structs.replace(operation, f="read")
                yield _marked(read, is_final=True)
            else:
                yield operation


class GrowOnlyCounter(PnCounter):
    smallest = 0


def _number_read(value: Any) -> int:
    """Return what a read of a counter returned; raises WrongValue if it is not a number."""
    number = _amount(value)
    if number is None or abs(number) >= FIRST_NAME:
        raise WrongValue("read did not return a whole number below 2^62")
    return number


def _is_final(operation: Operation) -> bool:
    return operation.other is not None and operation.other.get(FINAL) is True


def _marked(operation: Operation, *, is_final: bool) -> Operation:
    """The operation with the mark of a final one, or without it."""
    if is_final == _is_final(operation):
        return operation
    other = {name: value for name, value in (operation.other or {}).items() if name != FINAL}
    return structs.replace(operation, other={**other, FINAL: True} if is_final else other or None)


class UniqueIds(Objects):
    functions = frozenset({"generate"})
    takes = frozenset()
    returns = frozenset({"generate"})

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        if type_ == OK and value is None:
            raise WrongValue("generate did not return an id")
        return super().columns(f, type_, value, names)

    def _split(self, f: str, value: Any) -> tuple[tuple[Any] | None, Any]:  # noqa: ARG002
        return None, value

    def _with_keys(self, pair: Pair) -> Pair:
        return pair


class Bank(Objects):
    functions = frozenset({"read", "transfer"})
    takes = frozenset()

    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        key, value = self._split(f, value)
        columns: Columns = {} if key is None else {"key": names.number(key[0])}
        if f == "transfer":
            columns["values"] = _transfer(value, names)
        elif type_ == OK:
            columns["values"] = _balances(value, names)
        return columns

    def may_be_silent(self, f: str) -> bool:
        return f == "transfer"

    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        flat = columns.get("values")
        value: Any = None
        if flat is not None and columns["f"] == "transfer":
            entries = (*map(names.value, flat[:2]), flat[2])
            value = {Keyword(name): entry for name, entry in zip(TRANSFER, entries, strict=True)}
        elif flat is not None:
            pairs = zip(flat[::2], flat[1::2], strict=True)
            value = {names.value(account): names.value(balance) for account, balance in pairs}
        key = columns.get("key")
        return value if key is None else (names.value(key), value)


def _transfer(value: Any, names: Names) -> list[int]:
    entries = value if isinstance(value, dict) else {}
    source, target, amount = map(entries.get, TRANSFER)
    amount = _amount(amount)
    if source is None or target is None or amount is None or abs(amount) >= MAX_AMOUNT:
        raise WrongValue("transfer without :from, :to and a whole :amount")
    return [names.number(source), names.number(target), amount]


def _balances(value: Any, names: Names) -> list[int]:
    if not isinstance(value, dict):
        raise WrongValue("read did not return a map of accounts to balances")
    flat: list[int] = []
    for account, balance in value.items():
        amount = _amount(balance)
        if balance is not None and (amount is None or abs(amount) >= FIRST_NAME):
            raise WrongValue("read returned a balance that is not a whole number below 2^62")
        flat += (names.number(account), names.number(None) if amount is None else amount)
    return flat


def _amount(value: Any) -> int | None:
    """Return a whole number, however it is written; None for another value."""
    is_fraction = isinstance(value, float | Decimal)
    if is_fraction and -FIRST_NAME < value < FIRST_NAME and value == int(value):
        return int(value)
    return value if type(value) is int else None
