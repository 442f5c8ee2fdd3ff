"""What the page's slider looks up: which broker was what at any time, as data for the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nemesis.reports.marks import Marks
from nemesis.reports.series import PartitionSeries, RunSeries
from nemesis.reports.terms import Term


@dataclass(frozen=True, slots=True)
class States:
    """Every change, with its time in seconds."""

    start_s: float
    """The time that the page opens with: the first proof of a broken property, else the middle of the run."""
    data: dict[str, Any]


def states(run: RunSeries, marks: Marks, terms: Sequence[Term]) -> States | None:
    """Return what is known of brokers over time; None if nothing is."""
    brokers = sorted(
        {
            *(term.node for term in terms),
            *run.down,
            *(node for partition in run.partitions for node in partition.log_ends),
        }
    )
    if not brokers:
        return None
    data = {
        "brokers": brokers,
        "down": {str(node): spans for node, spans in run.down.items()},
        "terms": [(term.start_s, term.stop_s, term.node, term.epoch) for term in terms],
        "partitions": [_partition(partition) for partition in run.partitions],
        "faults": [
            (band.start_s, band.stop_s, band.fault.name, band.fault.targets) for band in marks.bands
        ],
    }
    return States(min(marks.findings_s, default=run.duration_s / 2), data)


def _partition(partition: PartitionSeries) -> dict[str, Any]:
    epochs = partition.leader_epochs
    led = zip(epochs.x.tolist(), partition.leaders, epochs.y.tolist(), strict=True)
    return {"name": partition.name, "led": list(led), "isr": partition.isr}
