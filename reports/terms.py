"""When which broker was controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nemesis.reports.series import Reign, RunSeries


@dataclass(frozen=True, slots=True)
class Term:
    """A broker was controller of an epoch, as far as that is known."""

    node: int
    epoch: int
    start_s: float
    stop_s: float


def controller_terms(
    run: RunSeries, without: Sequence[tuple[float, float]] = ()
) -> tuple[list[Term], list[Reign]]:
    """Return the terms, and the elections that their winners learned of when a later one was known.

    A term ends with the next election, with a resignation, or when the cluster is ``without`` a controller.
    """
    won, late = _split_late([reign for reign in run.reigns if not reign.resigned])
    ends = [*(reign.at_s for reign in won), run.duration_s][1:]
    resigned = {reign.epoch: reign.at_s for reign in run.reigns if reign.resigned}
    terms = [
        Term(reign.node, reign.epoch, reign.at_s, _end(reign, stop_s, resigned, without))
        for reign, stop_s in zip(won, ends, strict=True)
    ]
    return terms, late


def _split_late(won: Sequence[Reign]) -> tuple[list[Reign], list[Reign]]:
    """Part elections from those that paused processes learn of when a later one is known."""
    on_time: list[Reign] = []
    late: list[Reign] = []
    for reign in won:
        (late if on_time and reign.epoch < on_time[-1].epoch else on_time).append(reign)
    return on_time, late


def _end(
    reign: Reign,
    stop_s: float,
    resigned: dict[int, float],
    without: Sequence[tuple[float, float]],
) -> float:
    gaps = [gap_s for gap_s, _ in without if reign.at_s < gap_s]
    own = [resigned[reign.epoch]] if resigned.get(reign.epoch, 0.0) > reign.at_s else []
    return min([stop_s, *gaps, *own])
