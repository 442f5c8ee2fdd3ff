"""What an operation of another system's client says, as a clause: of an object, or a transaction.

Their processes are numbers, and their objects have a key or are the only one. Values that stand for names are put into
words by who knows the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from nemesis.history.events import Event, Kind

SHOWN: Final = 8
"""How many are shown: of more micro-operations the first, of more elements the last."""
_READ: Final = 0
_TEXTS: Final = frozenset({"put", "append", "get"})
"""Functions of texts, whose ``values`` are characters."""
_SHOWN_CHARACTERS: Final = 40
_ANSWERED: Final = frozenset({"read", "final-read", "dequeue", "drain", "generate", "get", "inc"})
FUNCTIONS: Final = _ANSWERED | {
    "put",
    "append",
    "insert",
    "write",
    "cas",
    "acquire",
    "release",
    "add",
    "enqueue",
    "txn",
    "transfer",
}


def foreign_operation(event: Event) -> str:
    """Return the clause of an operation of one of ``FUNCTIONS``."""
    return _CLAUSES[event.kind](event)


def client(event: Event) -> str:
    """Return how a client is called: ``producer-3``, and ``process 3`` where it has a number only."""
    return f"process {event.process}" if event.process[:1].isdigit() else event.process


def error(event: Event) -> str:
    """Return the error in brackets, behind a space; nothing if the history states none."""
    return "" if event.error is None else f" ({event.error})"


def _invoked(event: Event) -> str:
    return f"{client(event)} began {_operation(event)}"


def _ok(event: Event) -> str:
    if event.f == "txn":
        return f"{client(event)} received the answer that {_operation(event)} had been committed"
    if event.f not in _ANSWERED:
        return f"{client(event)} received the answer that {_operation(event)} had succeeded"
    answer = "nil" if event.value is None else str(event.value)
    if event.f in _TEXTS:
        answer = _text(event.values or [])
    elif event.values is not None:
        answer = _elements(event.values)
    return f"{client(event)} received {answer} from {_operation(event)}"


def _failed(event: Event) -> str:
    return f"{_operation(event)} by {client(event)} certainly failed{error(event)}"


def _unknown(event: Event) -> str:
    return f"the outcome of {_operation(event)} by {client(event)} is unknown{error(event)}"


def _operation(event: Event) -> str:
    if event.f == "txn":
        micros = list(islice(_micros(event.micro_operations or []), SHOWN + 1))
        more = ", …" if len(micros) > SHOWN else ""
        return f"transaction T{event.op} ({', '.join(micros[:SHOWN])}{more})"
    argument = ""
    if event.f == "cas" and event.values is not None:
        argument = f" {' → '.join(map(str, event.values))}"
    elif event.f == "transfer" and event.values is not None:
        source, destination, amount = event.values
        argument = f" {amount} from {source} to {destination}"
    elif event.f in _TEXTS - _ANSWERED and event.values is not None:
        argument = f" {_text(event.values)}"
    elif event.f not in _ANSWERED and event.value is not None:
        argument = f" {event.value}"
    return f"{event.f}{argument} of {'the object' if event.key is None else f'key {event.key}'}"


def _micros(flat: list[int]) -> Iterator[str]:
    """The micro-operations of a transaction: code, key, how many elements (−1: not known), elements."""
    index = 0
    while index + 3 <= len(flat):
        code, key, count = flat[index : index + 3]
        index += 3
        elements = flat[index : index + max(count, 0)]
        index += len(elements)
        if code != _READ:
            yield f"write {_elements(elements)} to key {key}"
        elif count < 0:
            yield f"read key {key}"
        else:
            yield f"read {_elements(elements)} of key {key}"


def _elements(elements: list[int]) -> str:
    if not elements:
        return "nothing"
    omitted = "…, " if len(elements) > SHOWN else ""
    return f"{omitted}{', '.join(map(str, elements[-SHOWN:]))}"


def _text(characters: list[int]) -> str:
    """A text in quotes; of a long one its end."""
    omitted = "…" if len(characters) > _SHOWN_CHARACTERS else ""
    return f'"{omitted}{"".join(map(chr, characters[-_SHOWN_CHARACTERS:]))}"'


_CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {Kind.INVOKE: _invoked, Kind.OK: _ok, Kind.FAIL: _failed, Kind.INFO: _unknown}
)
