"""What a person sees while a run lasts: phase, operations per second, controller and its epoch,
faults in force.

On a terminal one line that changes; elsewhere (a pipe, a log of CI) a plain line whenever the
phase changes and every few seconds. Progress goes to stderr, so that ``--json`` and the last line
on stdout stay clean.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from nemesis.support.live_display import LiveDisplay


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


class Progress(LiveDisplay):
    """Shows the status of a run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last_phase = ""

    def show(self, status: Status) -> None:
        """Show how far it is; a new phase is news."""
        is_news = status.phase != self._last_phase
        self._last_phase = status.phase
        self.update(_table(status), line(status), is_news=is_news)


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
