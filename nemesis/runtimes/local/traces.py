"""The part ``traces`` of the local runtime: the ends of the trace files are read every two milliseconds.

Brokers write one line per event with one ``write()``, so a file ends in the middle of a line only while its broker is
being killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from nemesis.history.events import Event

POLL_INTERVAL_S: Final = 0.002
TRACES: Final = "raw/broker-*.jsonl"
_DECODER: Final = msgspec.json.Decoder(Event)


class LocalTraces:
    """Implements ``nemesis.interfaces.traces.Traces``."""

    def __init__(self, run_directory: Path) -> None:
        self._run_directory = run_directory

    async def first(self, matches: Callable[[Event], bool], *, timeout_s: float) -> Event | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        positions = {path: path.stat().st_size for path in self._files()}
        while True:
            for path in self._files():
                lines, positions[path] = _lines_after(path, positions.get(path, 0))
                if (event := next(filter(matches, _events(lines)), None)) is not None:
                    return event
            if loop.time() > deadline:
                return None
            await asyncio.sleep(POLL_INTERVAL_S)

    def _files(self) -> list[Path]:
        return sorted(self._run_directory.glob(TRACES))


def _lines_after(path: Path, position: int) -> tuple[list[bytes], int]:
    """Return the whole lines behind the position, and the position behind them."""
    with path.open("rb") as file:
        file.seek(position)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return whole.splitlines(), position + len(whole)


def _events(lines: list[bytes]) -> Iterator[Event]:
    """Yield the events; a line that a killed broker left torn is not an event."""
    for line in lines:
        try:
            yield _DECODER.decode(line)
        except msgspec.DecodeError:
            continue
