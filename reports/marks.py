"""What is drawn behind every chart: faults as bands, phases, and when findings were proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.reports.charts.paths import HEIGHT, box, horizontal
from nemesis.reports.series import Fault, Phase, RunSeries

FAULT_COLOURS: Final = (
    *("#d9822b", "#c2497c", "#7a5cc0", "#2b8fb3", "#8a9a2b", "#b35c3c", "#4f7d5c", "#6b7280"),
)


@dataclass(frozen=True, slots=True)
class Band:
    """A fault in force."""

    fault: Fault
    start_s: float
    stop_s: float
    shade: str

    @property
    def title(self) -> str:
        length_s = self.stop_s - self.start_s
        return f"{self.fault.label}: {self.start_s:.3f}–{self.stop_s:.3f} s ({length_s:.3f} s)"


@dataclass(frozen=True, slots=True)
class Marks:
    """What every chart of a run is marked with."""

    duration_s: float
    faults: tuple[Fault, ...]
    phases: tuple[Phase, ...]
    findings_s: tuple[float, ...] = ()
    """When the events happened that prove what is broken."""

    @classmethod
    def of(cls, run: RunSeries, findings_s: Sequence[float] = ()) -> Marks:
        return cls(run.duration_s, run.faults, run.phases, tuple(findings_s))

    @property
    def bands(self) -> list[Band]:
        """Each applied fault with its start and end in seconds; one never healed lasts to the end.

        It starts when it was begun: it is applied once its effect has been measured, a rolling restart when it is over.
        """
        return [
            Band(
                fault,
                fault.start_s if fault.invoked_s is None else fault.invoked_s,
                self.duration_s if fault.stop_s is None else fault.stop_s,
                self.colour(fault),
            )
            for fault in self.faults
            if fault.start_s is not None
        ]

    @property
    def band_paths(self) -> list[tuple[str, str]]:
        """(path, colour) of each band, as high as a panel."""
        return [
            (box(left, right, 0, HEIGHT), band.shade)
            for band in self.bands
            for left, right in [self._columns(band.start_s, band.stop_s)]
        ]

    @property
    def phase_path(self) -> str:
        """An upright line where each phase begins."""
        return self._upright([phase.start_s for phase in self.phases])

    @property
    def finding_path(self) -> str:
        """An upright line where each broken property was first proved to be."""
        return self._upright(self.findings_s)

    def colour(self, fault: Fault) -> str:
        """One colour per kind of fault."""
        kinds = list(dict.fromkeys(fault.name for fault in self.faults))
        return FAULT_COLOURS[kinds.index(fault.name) % len(FAULT_COLOURS)]

    def _upright(self, seconds: Sequence[float]) -> str:
        return "".join(f"M{column} 0v{HEIGHT}" for column in self._columns(*seconds))

    def _columns(self, *seconds: float) -> list[int]:
        columns: list[int] = horizontal(np.array(seconds), self.duration_s).tolist()
        return columns
