"""Files of histories as Jepsen writes them, an operation in each line of EDN: registers in many keys, and lists.

``CLIENTS`` clients act at the same time; an operation takes effect when it completes. So each history is correct.
Compare-and-sets fail where the register has another value. Of one register operation in a thousand the outcome is
unknown, half of these writes have happened, and the client goes on as a new process. One transaction in a hundred
fails.

Seeded: the same arguments write the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

CLIENTS: Final = 20
KEYS: Final = 1_000
VALUES: Final = 5
"""Values of compare-and-set registers; those of other registers are written once."""
LISTS: Final = 10
"""Lists that are in use at a time; one that got ``APPENDS`` elements makes room for a new one."""
APPENDS: Final = 32
UNKNOWN: Final = 0.001
FAILED: Final = 0.01


@dataclass(slots=True)
class Call:
    """An operation of a client that is under way."""

    process: int
    f: str
    value: str
    """Of the invocation, as EDN."""
    end: Callable[[], tuple[str, str]]
    """Lets the operation take effect; returns the type and the value of the completion."""


@dataclass(slots=True)
class Registers:
    """Registers in ``KEYS`` keys; with or without compare-and-sets."""

    rng: Random
    has_cas: bool
    state: dict[int, int] = field(default_factory=dict)
    written: int = 0

    def call(self, process: int) -> Call:
        """Begin an operation."""
        rng = self.rng
        key, draw = rng.randrange(KEYS), rng.random()
        if draw < 0.5:
            return Call(process, "read", f"[{key} nil]", lambda: ("ok", self._read(key)))
        if self.has_cas and draw < 0.75:
            old, new = rng.randrange(VALUES), rng.randrange(VALUES)
            asked = f"[{key} [{old} {new}]]"
            return Call(process, "cas", asked, lambda: (self._exchange(key, old, new), asked))
        self.written += 1
        value = rng.randrange(VALUES) if self.has_cas else self.written
        asked = f"[{key} {value}]"
        return Call(process, "write", asked, lambda: (self._write(key, value), asked))

    def _read(self, key: int) -> str:
        return f"[{key} {self.state.get(key, 'nil')}]"

    def _write(self, key: int, value: int) -> str:
        is_unknown = self.rng.random() < 2 * UNKNOWN
        if not is_unknown or self.rng.random() < 0.5:
            self.state[key] = value
        return "info" if is_unknown else "ok"

    def _exchange(self, key: int, old: int, new: int) -> str:
        if self.state.get(key) != old:
            return "fail"
        self.state[key] = new
        return "ok"


@dataclass(slots=True)
class Lists:
    """Transactions of one to four micro-operations, half of them appends."""

    rng: Random
    state: dict[int, list[int]] = field(default_factory=dict)
    keys: list[int] = field(default_factory=lambda: list(range(LISTS)))
    appended: list[int] = field(default_factory=lambda: [0] * LISTS)
    last_key: int = LISTS - 1

    def call(self, process: int) -> Call:
        """Begin a transaction."""
        micros = [self._micro() for _ in range(self.rng.randrange(1, 5))]
        return Call(process, "txn", _vector(micros), lambda: self._commit(micros))

    def _micro(self) -> tuple[str, int, str]:
        slot = self.rng.randrange(LISTS)
        if self.rng.random() < 0.5:
            return "r", self.keys[slot], "nil"
        if self.appended[slot] == APPENDS:
            self.last_key += 1
            self.keys[slot], self.appended[slot] = self.last_key, 0
        self.appended[slot] += 1
        return "append", self.keys[slot], str(self.appended[slot])

    def _commit(self, micros: list[tuple[str, int, str]]) -> tuple[str, str]:
        if self.rng.random() < FAILED:
            return "fail", _vector(micros)
        answers = []
        for f, key, value in micros:
            elements = self.state.setdefault(key, [])
            if f == "append":
                elements.append(int(value))
                answers.append((f, key, value))
            else:
                answers.append((f, key, f"[{' '.join(map(str, elements))}]"))
        return "ok", _vector(answers)


def _vector(micros: list[tuple[str, int, str]]) -> str:
    return f"[{' '.join(f'[:{f} {key} {value}]' for f, key, value in micros)}]"


def write(file: Path, workload: str, count: int, seed: int = 1) -> None:
    """Write a history of ``count`` operations. Raises OSError."""
    rng = Random(seed)
    objects = Lists(rng) if workload == "list-append" else Registers(rng, workload != "register")
    with file.open("w", encoding="utf-8") as out:
        time = 0
        for index, (process, kind, f, value) in enumerate(_lines(rng, objects, count)):
            time += rng.randrange(1_000, 20_000)
            out.write(
                f"{{:type :{kind}, :process {process}, :f :{f}, :value {value}, :time {time}, :index {index}}}\n"
            )


def _lines(
    rng: Random, objects: Registers | Lists, count: int
) -> Iterator[tuple[int, str, str, str]]:
    """Yield process, type, function and value of each line."""
    free, under_way = list(range(CLIENTS)), list[Call]()
    begun, next_process = 0, CLIENTS
    while begun < count or under_way:
        if begun < count and free and (not under_way or rng.random() < 0.5):
            call = objects.call(free.pop(rng.randrange(len(free))))
            begun += 1
            under_way.append(call)
            yield call.process, "invoke", call.f, call.value
            continue
        call = under_way.pop(rng.randrange(len(under_way)))
        kind, value = call.end()
        yield call.process, kind, call.f, value
        free.append(next_process if kind == "info" else call.process)
        next_process += kind == "info"
