"""What a benchmark measured, as one row for all of them: for the summary, for files, for plots.

A *figure* is how long something took that has a size, beside a scan of the same file in the same run, and what was
required of it at that size: a rate, or a time. Figures are saved as JSON lines, and put together over several runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.table import Table

MILLION: Final = 1_000_000
GIGABYTE: Final = 1_000_000_000


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement; a requirement that is not there is not required at this size."""

    benchmark: str
    what: str
    """A line in a plot: the same thing in several sizes."""
    size: int
    unit: str
    """What is counted: events, records, operations."""
    seconds: float
    scan_s: float | None = None
    """The time of a raw pyarrow scan of the columns that are read."""
    required_per_s: int | None = None
    required_s: float | None = None
    peak_bytes: int | None = None
    allowed_bytes: int | None = None

    @property
    def ratio(self) -> float | None:
        """How many scans it took."""
        return None if self.scan_s is None else self.seconds / self.scan_s

    @property
    def is_met(self) -> bool | None:
        """Whether it is as required; ``None`` where nothing is."""
        kept = []
        if self.required_per_s is not None:
            kept.append(self.size / self.seconds >= self.required_per_s)
        if self.required_s is not None:
            kept.append(self.seconds < self.required_s)
        if self.allowed_bytes is not None and self.peak_bytes is not None:
            kept.append(self.peak_bytes < self.allowed_bytes)
        return all(kept) if kept else None


def summary(figures: Iterable[Figure]) -> Table:
    """All that is required of what was measured, in one table."""
    table = Table(
        "what", "size", "required", "measured", "ratio to scan", "met", title="What is required"
    )
    for one in figures:
        if one.is_met is not None:
            ratio = "" if one.ratio is None else f"{one.ratio:.1f}"
            met = "yes" if one.is_met else "NO"
            size = f"{_count(one.size)} {one.unit}"
            table.add_row(one.what, size, _required(one), _measured(one), ratio, met)
    return table


def save(file: Path, figures: Iterable[Figure]) -> None:
    """Add them to the end of a file, a line each; raises OSError."""
    with file.open("ab") as lines:
        for one in figures:
            lines.write(msgspec.json.encode(one) + b"\n")


def read(file: Path) -> list[Figure]:
    """Return the figures of a file; raises OSError, or msgspec.MsgspecError for what is none."""
    return [msgspec.json.decode(line, type=Figure) for line in file.read_bytes().splitlines()]


def plots(figures: Sequence[Figure]) -> str:
    """Time against size as mermaid's blocks, one for each benchmark, a line for each thing that it measured.

    Of several measurements of one size the least time is drawn. Of one size alone there is nothing to draw.
    """
    names = dict.fromkeys(one.benchmark for one in figures)
    blocks = [_plot([one for one in figures if one.benchmark == name]) for name in names]
    return "\n".join(block for block in blocks if block)


def _plot(figures: Sequence[Figure]) -> str:
    times: dict[str, dict[int, float]] = {}
    for one in figures:
        of_size = times.setdefault(one.what, {})
        of_size[one.size] = min(one.seconds, of_size.get(one.size, one.seconds))
    sizes = sorted(set.intersection(*(set(of_size) for of_size in times.values())))
    if len(sizes) < 2:
        return ""
    lines = ", ".join(f"{what} ({number})" for number, what in enumerate(times, start=1))
    drawn = [
        f"    line [{', '.join(f'{of_size[size]:.2f}' for size in sizes)}]"
        for of_size in times.values()
    ]
    axis = ", ".join(f'"{_count(size)}"' for size in sizes)
    return "\n".join(
        [
            "```mermaid",
            "xychart-beta",
            f'    title "Seconds: {lines}"',
            f'    x-axis "{figures[0].unit}" [{axis}]',
            '    y-axis "seconds"',
            *drawn,
            "```",
            "",
        ]
    )


def _count(size: int) -> str:
    return f"{size / MILLION:g} M" if size >= MILLION else f"{size:,}"


def _required(one: Figure) -> str:
    parts = []
    if one.required_per_s is not None:
        parts.append(f"{one.required_per_s / MILLION:g} M/s")
    if one.required_s is not None:
        parts.append(f"under {one.required_s:g} s")
    if one.allowed_bytes is not None:
        parts.append(f"under {one.allowed_bytes / GIGABYTE:g} GB")
    return ", ".join(parts)


def _measured(one: Figure) -> str:
    rate = one.size / one.seconds / MILLION
    parts = [f"{rate:.1f} M/s" if one.required_per_s is not None else f"{one.seconds:.1f} s"]
    if one.allowed_bytes is not None and one.peak_bytes is not None:
        parts.append(f"{one.peak_bytes / GIGABYTE:.1f} GB")
    return ", ".join(parts)
