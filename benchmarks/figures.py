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
BEGIN: Final = "<!-- results: written by python -m benchmarks page -->"
END: Final = "<!-- end of results -->"


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
    for figure in figures:
        if figure.is_met is not None:
            ratio = "" if figure.ratio is None else f"{figure.ratio:.1f}"
            met = "yes" if figure.is_met else "NO"
            size = f"{_count(figure.size)} {figure.unit}"
            table.add_row(figure.what, size, _required(figure), _measured(figure), ratio, met)
    return table


def with_results(page: str, figures: Sequence[Figure]) -> str:
    """Return a page with these figures as its results: what is required, then time against size."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the lines {BEGIN!r} and {END!r} in the page")
    results = "\n".join([*_required_table(figures), plots(figures)]).rstrip()
    return f"{before}{begin}\n\n{results}\n\n{end}{after}"


def _required_table(figures: Iterable[Figure]) -> list[str]:
    """The lines of the table of what is required, as Markdown."""
    table = summary(figures)
    names = [str(column.header) for column in table.columns]
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return [f"| {' | '.join(map(str, row))} |" for row in [names, ["---"] * len(names), *rows]] + [
        ""
    ]


def save(file: Path, figures: Iterable[Figure]) -> None:
    """Add them to the end of a file, a line each; raises OSError."""
    with file.open("ab") as lines:
        for figure in figures:
            lines.write(msgspec.json.encode(figure) + b"\n")


def read(file: Path) -> list[Figure]:
    """Return the figures of a file; raises OSError, or msgspec.MsgspecError for what is none."""
    return [msgspec.json.decode(line, type=Figure) for line in file.read_bytes().splitlines()]


def plots(figures: Sequence[Figure]) -> str:
    """Time against size as mermaid's blocks, one for each benchmark, a line for each thing that it measured.

    Of several measurements of one size the least time is drawn. Of one size alone there is nothing to draw.
    """
    names = dict.fromkeys(figure.benchmark for figure in figures)
    blocks = [_plot([figure for figure in figures if figure.benchmark == name]) for name in names]
    return "\n".join(block for block in blocks if block)


def _plot(figures: Sequence[Figure]) -> str:
    times: dict[str, dict[int, float]] = {}
    for figure in figures:
        of_size = times.setdefault(figure.what, {})
        of_size[figure.size] = min(figure.seconds, of_size.get(figure.size, figure.seconds))
    sizes = sorted(set.intersection(*(set(of_size) for of_size in times.values())))
    if len(sizes) < 2:
        return ""
    lines = ", ".join(f"{label} ({number})" for number, label in enumerate(times, start=1))
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


def _required(figure: Figure) -> str:
    parts = []
    if figure.required_per_s is not None:
        parts.append(f"{figure.required_per_s / MILLION:g} M/s")
    if figure.required_s is not None:
        parts.append(f"under {figure.required_s:g} s")
    if figure.allowed_bytes is not None:
        parts.append(f"under {figure.allowed_bytes / GIGABYTE:g} GB")
    return ", ".join(parts)


def _measured(figure: Figure) -> str:
    rate = figure.size / figure.seconds / MILLION
    parts = [f"{rate:.1f} M/s" if figure.required_per_s is not None else f"{figure.seconds:.1f} s"]
    if figure.allowed_bytes is not None and figure.peak_bytes is not None:
        parts.append(f"{figure.peak_bytes / GIGABYTE:.1f} GB")
    return ", ".join(parts)
