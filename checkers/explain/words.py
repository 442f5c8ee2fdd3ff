"""How values are said in sentences: brokers, offsets, zxids, sessions, lengths of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

HARNESS: Final = "HARNESS: "
"""How the error of a ``convergence`` event begins if the harness could not make that check."""
_NS_PER_MS = 1_000_000


def listed(items: Iterable[object]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``; ``none`` of nothing."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "none"


def brokers(nodes: Iterable[int] | None) -> str:
    """``broker 1``, ``brokers 1 and 2``, ``no broker``."""
    known = list(nodes or ())
    if not known:
        return "no broker"
    return f"broker{'s' if len(known) > 1 else ''} {listed(known)}"


def offsets(first: int | None, last: int | None = None) -> str:
    """``offset 5``, ``offsets 5 to 9``."""
    return f"offset {first}" if last in (None, first) else f"offsets {first} to {last}"


def zxid(number: int | None) -> str:
    """As ZooKeeper's tools write it."""
    return f"zxid {number or 0:#x}"


def tp(topic: str | None, partition: int | None) -> str:
    return f"{topic}-{partition}" if partition is not None else f"{topic}"


def duration(nanoseconds: int) -> str:
    """``412 ns``, ``0.41 ms``, ``41 ms``, ``2.04 s``."""
    if nanoseconds < _NS_PER_MS // 100:
        return f"{nanoseconds:,} ns"
    if nanoseconds < 1_000 * _NS_PER_MS:
        return f"{nanoseconds / _NS_PER_MS:,.3g} ms"
    return f"{nanoseconds / _NS_PER_MS / 1_000:,.2f} s"


def counted(number: int, noun: str) -> str:
    """``1 partition``, ``2 partitions``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentence(words: str) -> str:
    """Begin with a capital letter, unless it is a process's name (``producer-0``), and end with a full stop."""
    is_name = words.partition(" ")[0][-1:].isdigit()
    begun = words if is_name else f"{words[:1].upper()}{words[1:]}"
    return begun if begun.endswith(".") else f"{begun}."
