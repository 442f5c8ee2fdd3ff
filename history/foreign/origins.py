"""Where the events of a run stand in the file that they were read from: line and index of each.

Two numbers for each event, in the order of ``seq``; an index is −1 where the file states none. Kept with the run, so
that findings name lines when the file is gone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from nemesis.history.errors import DamagedHistoryError
from nemesis.history.foreign.operations import Operation

FILE: Final = "lines.npy"
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class Origin:
    line: int
    index: int | None


class Origins:
    """Collects the origins of events in the order in which they are written."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def add(self, operation: Operation) -> None:
        """State the operation of the next event."""
        index = UNKNOWN if operation.index is None else operation.index
        self._numbers.extend((operation.line, index))

    def write(self, directory: Path) -> None:
        """Keep the origins in the directory of a run. Raises OSError."""
        np.save(directory / FILE, np.array(self._numbers, dtype=np.int64).reshape(-1, 2))


def read_origins(directory: Path, events: Sequence[int]) -> dict[int, Origin]:
    """Return the origins of the events with these values of ``seq``; none for a run without any.

    Raises DamagedHistoryError.
    """
    file = directory / FILE
    try:
        stored = np.load(file, mmap_mode="r")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DamagedHistoryError(f"{file} is damaged: {error}") from None
    if stored.ndim != 2 or stored.shape[1:] != (2,):
        raise DamagedHistoryError(f"{file} is damaged: expected two numbers for each event")
    numbers = {seq: stored[seq].tolist() for seq in events if 0 <= seq < len(stored)}
    return {
        seq: Origin(line, None if index == UNKNOWN else index)
        for seq, (line, index) in numbers.items()
    }
