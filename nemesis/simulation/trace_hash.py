"""Are two runs the same, and if not, where do they part?

The trace of a run is its events in the order in which they were recorded, each as the line that a file would hold.
Equal orders must give equal traces, so one hash of the lines stands for the whole run: it is stored, compared between
interpreters, and printed. It does not tell more than that; for the place where two traces part both are needed.

The lines are those of ``nemesis.history.recorder``: fields in the order of ``Event``, unset ones left out, no
floating-point number among them. So the hash does not depend on the Python version, the machine or ``PYTHONHASHSEED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Final

import msgspec

from nemesis.history.events import Event

DIGEST_BYTES: Final = 16
"""128 bits: no two runs that anybody will ever make share a hash by chance."""
END_OF_LINE: Final = b"\n"
LINES_HASHED_TOGETHER: Final = 4096


class TraceHash:
    """The hash of a trace, line by line as the run goes on."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=DIGEST_BYTES)

    def add(self, line: bytes) -> None:
        """Add the next event, encoded, without a newline."""
        self._hash.update(line)
        self._hash.update(END_OF_LINE)

    def add_events(self, events: Iterable[Event]) -> None:
        """Add the next events; what ``add`` of their lines would give, in a third of the time."""
        encode = msgspec.json.Encoder().encode_lines
        listed = events if isinstance(events, list) else list(events)
        for start in range(0, len(listed), LINES_HASHED_TOGETHER):
            self._hash.update(encode(listed[start : start + LINES_HASHED_TOGETHER]))

    def hexdigest(self) -> str:
        """Return the hash of what was added so far: 32 hexadecimal digits."""
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two traces part."""

    index: int
    """How many events they have in common, from the start."""
    first: Event | None
    """The next event of the first trace; ``None``: it ends here."""
    second: Event | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields in which the two events differ; none if one of the traces ends."""
        if self.first is None or self.second is None:
            return ()
        return tuple(
            name
            for name in Event.__struct_fields__
            if getattr(self.first, name) != getattr(self.second, name)
        )

    def __str__(self) -> str:
        """Both events as they stand in a file of lines, and what differs in them."""
        about = f" in {', '.join(self.fields)}" if self.fields else ""
        return (
            f"event {self.index} (counted from 0) differs{about}\n"
            f"  first:  {_line(self.first)}\n"
            f"  second: {_line(self.second)}"
        )


def first_difference(first: Sequence[Event], second: Sequence[Event]) -> Difference | None:
    """Return where two traces part, ``None`` if they are the same; a trace that ends early parts there."""
    for index, (event, other) in enumerate(zip_longest(first, second)):
        if event != other:
            return Difference(index, event, other)
    return None


def _line(event: Event | None) -> str:
    return "(the trace has ended)" if event is None else msgspec.json.encode(event).decode()
