"""How the operations of one workload become events, and events become operations again.

A workload's vocabulary says which functions it has and what their values look like. Most operations are one event that
invokes and one that completes (``Plain``); an operation on several logs is several (``nemesis.history.foreign.logs``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nemesis.history.foreign.edn import Keyword, dumps, is_vector, keyword_or_text, loads
from nemesis.history.foreign.names import Names, value_of, word_of
from nemesis.history.foreign.operations import FAIL, INFO, INVOKE, NEMESIS, OK, Operation
from nemesis.history.foreign.pairs import Pair
from nemesis.history.foreign.problems import Damage, Problems

UNCHANGING: Final = frozenset({"read", "get", "transfer"})
"""Functions that change no object, or not the money of a bank."""
Columns = dict[str, Any]
"""Fields of ``nemesis.history.events.Event``."""


class WrongValue(ValueError):
    """A value is not what its function has; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """An operation, or one of several that it consists of, as columns; ``kind`` and what goes with it is in each."""

    invoke: Columns
    completion: Columns | None


class Vocabulary(ABC):
    functions: frozenset[str]
    default: str = ""
    """The function of operations that name none."""

    def function_of(self, operation: Operation) -> str | None:
        """Return the function of this workload that an operation is of; None: it is of another one."""
        f = operation.f or self.default
        return f if f in self.functions else None

    def may_be_silent(self, f: str) -> bool:  # noqa: ARG002
        """Whether an ``ok`` of this function that has no value says what its invocation says."""
        return False

    @abstractmethod
    def parts(self, pair: Pair, names: Names, problems: Problems) -> list[Part]:
        """Return the events of an operation of these functions; notes values that are wrong."""

    @abstractmethod
    def operations(self, events: Iterable[Mapping[str, Any]], names: Names) -> Iterable[Operation]:
        """Return the operations that events say, which are in the order of time."""


class Plain(Vocabulary):
    """One operation, one event to invoke it and one to complete it."""

    @abstractmethod
    def columns(self, f: str, type_: str, value: Any, names: Names) -> Columns:
        """Return the columns that say a value; of a ``fail`` or ``info``, what was asked for. Raises ``WrongValue``."""

    @abstractmethod
    def value(self, columns: Mapping[str, Any], names: Names) -> Any:
        """Return the value that columns say."""

    def parts(self, pair: Pair, names: Names, problems: Problems) -> list[Part]:
        invoke, completion = pair.invoke, pair.completion
        f = self.function_of(invoke) or (completion and self.function_of(completion)) or invoke.f
        asked = self._columns(f, INVOKE, invoke.value, names)
        if completion is None:
            _note(problems, asked, invoke)
            self._note_change(problems, f, asked)
            return [Part(event(invoke, f, _known(asked)), None)]
        answered = asked
        if isinstance(asked, WrongValue) or invoke.value is None:
            # Who failed, or does not know how it ended, may say what was asked for.
            answered = self._columns(f, INVOKE, completion.value, names)
        if isinstance(asked, WrongValue):
            _note(problems, answered, invoke)
            asked = answered
        kind = completion.type
        if kind == OK:
            is_silent = completion.value is None and self.may_be_silent(f)
            answered = self._columns(f, OK, invoke.value if is_silent else completion.value, names)
            if isinstance(answered, WrongValue):
                _note(problems, answered, completion)
                kind = INFO
        columns = asked if isinstance(answered, WrongValue) else answered
        if kind != FAIL:
            self._note_change(problems, f, columns)
        return [Part(event(invoke, f, _known(asked)), event(completion, f, _known(columns), kind))]

    def _note_change(self, problems: Problems, f: str, columns: Columns | WrongValue) -> None:
        """Note an operation that may have changed an object, and whose value cannot be read."""
        problems.has_unread_change |= isinstance(columns, WrongValue) and f not in UNCHANGING

    def operations(self, events: Iterable[Mapping[str, Any]], names: Names) -> Iterable[Operation]:
        for line, columns in enumerate(events, start=1):
            if is_aside(columns):
                yield operation_aside(columns, line)
            else:
                value = self.value(columns, names)
                yield operation(columns, line, columns["f"], value)

    def _columns(self, f: str, type_: str, value: Any, names: Names) -> Columns | WrongValue:
        try:
            return self.columns(f, type_, value, names)
        except WrongValue as error:
            return error


def _note(problems: Problems, columns: Columns | WrongValue, operation: Operation) -> None:
    if isinstance(columns, WrongValue):
        problems.note(Damage.WRONG_VALUE, operation.line, str(columns))


def _known(columns: Columns | WrongValue) -> Columns:
    return {} if isinstance(columns, WrongValue) else columns


def event(
    operation: Operation,
    f: str,
    columns: Columns,
    kind: str | None = None,
    process: str | None = None,
) -> Columns:
    """Return an event of an operation: its kind, process, time and error, and these columns."""
    said = {
        "kind": operation.type if kind is None else kind,
        "process": process or (word_of(operation.process) if operation.is_of_client else NEMESIS),
        "time": operation.time,
        "f": f,
        **columns,
    }
    if operation.error is not None:
        said["error"] = word_of(operation.error)
    return said


def operation(said: Mapping[str, Any], line: int, f: str, value: Any) -> Operation:
    """Return the operation of an event."""
    error = said.get("error")
    return Operation(
        line=line,
        type=said["kind"],
        process=value_of(said["process"]),
        f=f,
        value=value,
        time=said["time"],
        error=None if error is None else value_of(error),
    )


def aside(operation: Operation) -> Columns:
    """Return the event of an operation that no check looks at: its value and other entries as they were written."""
    entries: dict[str, Any] = {Keyword("value"): operation.value}
    entries |= {keyword_or_text(name): value for name, value in (operation.other or {}).items()}
    return event(operation, operation.f, {"original": dumps(entries)})


def is_aside(said: Mapping[str, Any]) -> bool:
    """Whether an event was made by ``aside``."""
    return "original" in said


def operation_aside(said: Mapping[str, Any], line: int) -> Operation:
    """Return the operation of an event that ``aside`` made."""
    entries = loads(said["original"])
    value = entries.pop("value")
    restored = operation(said, line, said["f"], value)
    restored.other = {str(name): value for name, value in entries.items()} or None
    return restored


def keyed(value: Any) -> tuple[Any, Any] | None:
    """Return key and value of a tuple of ``jepsen.independent``, or None."""
    return (value[0], value[1]) if is_vector(value) and len(value) == 2 else None


def numbers(values: Sequence[Any], names: Names) -> list[int]:
    """Return the numbers that stand for values."""
    return [names.number(value) for value in values]
