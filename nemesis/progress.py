"""What a person sees while a run lasts: phase, operations per second, controller and its epoch,
faults in force.

On a terminal one line that changes; elsewhere (a pipe, a log of CI) a plain line whenever the
phase changes and every few seconds. Progress goes to stderr, so that ``--json`` and the last line
on stdout stay clean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

PLAIN_INTERVAL_S = 10.0


@dataclass(slots=True)
class Status:
    """What is known at the moment. ``elapsed_s`` counts from the start of the workload."""

    phase: str = "start"
    elapsed_s: float = 0.0
    operations: int = 0
    operations_per_s: float = 0.0
    controller: str = "none"
    controller_epoch: int = 0
    faults: list[str] = field(default_factory=list)


class Progress:
    """A context manager; ``show`` may be called at any rate."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._last_phase = ""
        self._last_plain = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, status: Status) -> None:
        """Show the status, or leave it when nothing new is worth a plain line."""
        if self._live is not None:
            self._live.update(_table(status))
            return
        now = monotonic()
        if status.phase != self._last_phase or now - self._last_plain > PLAIN_INTERVAL_S:
            self._last_phase, self._last_plain = status.phase, now
            self._console.print(line(status), highlight=False, markup=False, soft_wrap=True)


def line(status: Status) -> str:
    """Return the status as one plain line."""
    faults = f"; in force: {', '.join(status.faults)}" if status.faults else ""
    return (
        f"{status.elapsed_s:5.1f} s  {status.phase}: {status.operations} operations, "
        f"{status.operations_per_s:.0f}/s; controller {status.controller} "
        f"(epoch {status.controller_epoch}){faults}"
    )


def _table(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(
        f"[bold]{status.phase}[/bold] {status.elapsed_s:.0f} s",
        f"{status.operations_per_s:.0f} operations/s",
        f"controller [cyan]{status.controller}[/cyan], epoch {status.controller_epoch}",
        f"[red]{', '.join(status.faults)}[/red]" if status.faults else "no fault in force",
    )
    return table
