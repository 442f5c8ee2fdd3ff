"""What is shown of a simulated run, learnt from its events alone."""

from __future__ import annotations

from dataclasses import replace

from nemesis.history.events import Event, Kind
from nemesis.running.progress import Status
from nemesis.running.simulated.status_display import StatusObserver

S = 1_000_000_000


def event(at_s: float, kind: Kind, **columns: object) -> Event:
    return Event(time=int(at_s * S), process="p", seq=0, kind=kind, **columns)  # type: ignore[arg-type]


def shown(*events: Event) -> list[Status]:
    statuses: list[Status] = []
    look = StatusObserver(lambda status: statuses.append(replace(status)))
    for event in events:
        look(event)
    return statuses


def test_each_phase_is_shown_with_the_time_and_the_counts_of_its_moment() -> None:
    """However fast the simulation is: all of this takes less than a real second."""
    observed = shown(
        event(0, Kind.PHASE, phase="start"),
        event(3, Kind.PHASE, phase="warm-up"),
        event(4, Kind.INVOKE),
        event(5, Kind.OK),
        event(10, Kind.PHASE, phase="faults"),
        event(11, Kind.OK),
        event(34, Kind.PHASE, phase="heal"),
        event(35, Kind.OK),
    )
    first = {status.phase: status for status in reversed(observed)}
    assert {name: (value.elapsed_s, value.operations) for name, value in first.items()} == {
        "start": (0.0, 0),
        "warm-up": (0.0, 0),
        "faults": (6.0, 1),
        "heal": (30.0, 2),
    }
