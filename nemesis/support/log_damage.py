"""Damage at the end of a log: what a crash may leave of the bytes that were not synced, and recovery has to find.

A log's last segment is cut in the middle of a batch, or one bit of a batch is flipped where its CRC sees it. Both
strike behind what was synced, so a broker that recovers may lose what comes after, and nothing before. Bits that no CRC
covers (base offset, length, leader epoch) are left alone: nobody could tell, and no recovery promises to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Final, NamedTuple

_SEGMENT: Final = re.compile(r"(?P<log>.*)/(?P<base>[0-9]{20})\.log")
_LENGTH_AT: Final = 8
_PREFIX_BYTES: Final = 12
"""Base offset and length."""
_CRC_AT: Final = 17
_HEADER_BYTES: Final = 61


class Batch(NamedTuple):
    """Where a record batch lies in a segment's file."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done to one file. ``flipped_bit`` is None where the file is cut at ``position`` instead."""

    path: str
    position: int
    flipped_bit: int | None
    lost_bytes: int
    """From the damaged batch to the end of the file."""


def last_segments(paths: Iterable[str]) -> list[str]:
    """Return of each log's segment files the one that is written to, in the order of their names."""
    newest: dict[str, str] = {}
    for path in sorted(paths):
        if segment := _SEGMENT.fullmatch(path):
            newest[segment["log"]] = path
    return list(newest.values())


def batches(data: bytes | bytearray) -> Iterator[Batch]:
    """Yield the batches that are whole, in order."""
    start = 0
    while start + _HEADER_BYTES <= len(data):
        length = int.from_bytes(
            data[start + _LENGTH_AT : start + _PREFIX_BYTES], "big", signed=True
        )
        end = start + _PREFIX_BYTES + length
        if end < start + _HEADER_BYTES or end > len(data):
            return
        yield Batch(start, end)
        start = end


def draw(path: str, data: bytes | bytearray, synced: int, rng: Random) -> Damage | None:
    """Return some damage behind what is synced; None where there is no batch that could be hurt."""
    at_risk = [batch for batch in batches(data) if batch.start >= synced]
    if not at_risk:
        return None
    batch = rng.choice(at_risk)
    lost = len(data) - batch.start
    if rng.random() < 0.5:
        return Damage(path, rng.randrange(batch.start + 1, batch.end), None, lost)
    return Damage(path, rng.randrange(batch.start + _CRC_AT, batch.end), rng.randrange(8), lost)


def inflict(data: bytearray, damage: Damage) -> None:
    """Damage the bytes of the file."""
    if damage.flipped_bit is None:
        del data[damage.position :]
    else:
        data[damage.position] ^= 1 << damage.flipped_bit


def damage_report(done: Iterable[Damage]) -> dict[str, Any]:
    """Return it as ``Runtime.corrupt_tail`` does."""
    listed = list(done)
    return {
        "damaged": [asdict(damage) for damage in listed],
        "lost_bytes": sum(damage.lost_bytes for damage in listed),
    }
