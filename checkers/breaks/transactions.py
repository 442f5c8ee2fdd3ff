"""Builders of tiny histories of transactions: ``r``, ``append``, ``w``, and ``txn`` that makes the events of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nemesis.history.events import Event


@dataclass(frozen=True)
class Micro:
    """A micro-operation; ``read`` is what it returned, ``None`` if the history does not say."""

    key: int
    read: tuple[int, ...] | None = None
    value: int | None = None

    @property
    def is_write(self) -> bool:
        return self.value is not None

    def flat(self, *, known: bool) -> list[int]:
        if self.value is not None:
            return [1, self.key, 1, self.value]
        if self.read is None or not known:
            return [0, self.key, -1]
        return [0, self.key, len(self.read), *self.read]


def r(key: int, *read: int) -> Micro:
    """A read of this list, or of this value of a register; of nothing: the empty list, nil."""
    return Micro(key, read=read)


def w(key: int, value: int) -> Micro:
    """A write to a register, or an append to a list."""
    return Micro(key, value=value)


append = w


def txn(
    op: int,
    *micro: Micro,
    index: tuple[int, int] | None = None,
    kind: str = "ok",
    process: str | None = None,
) -> list[Event]:
    """A transaction's events: from 10 · op to 10 · op + 5 unless ``at`` says otherwise, by a process of its own."""
    began, ended = index or (10 * op, 10 * op + 5)
    actor = process or f"p{op}"

    def event(time: int, label: str, values: list[int]) -> Event:
        return Event(
            time=time, process=actor, kind=label, seq=time, op=op, f="txn", micro_operations=values
        )

    asked = [number for item in micro for number in item.flat(known=False)]
    numbers = [number for item in micro for number in item.flat(known=kind == "ok")]
    invoke = event(began, "invoke", asked)
    return [invoke] if kind == "crash" else [invoke, event(ended, kind, numbers)]


def history(*transactions: Sequence[Event]) -> list[Event]:
    return [event for transaction in transactions for event in transaction]


def together(*transactions: Iterable[Micro]) -> list[Event]:
    """Transactions T1, T2, ..., all at the same time, each of a process of its own."""
    return history(
        *(txn(n, *micro, index=(n, 100 + n)) for n, micro in enumerate(transactions, start=1))
    )
