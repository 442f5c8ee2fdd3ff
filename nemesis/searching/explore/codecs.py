"""One seed with both codecs: the simulator's check of itself.

Schedules do not depend on the codec, so a run whose messages are encoded must give the same trace and the same
verdict as one whose messages cross by reference; a difference is a fault of the simulator, and makes everything else
that it said doubtful. Only sizes differ: what faults measured (bytes held, for instance) is left out.

It is a task of its own, so that a run which fails with the real codec takes nothing away from what the seed showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from nemesis.history.events import Event
from nemesis.running.simulated.run import MEASURED, trace_hash
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.searching.simulate import SimulationResult, simulate
from nemesis.simulation.trace_hash import first_difference


@dataclass(frozen=True, slots=True)
class CodecTask:
    """What a worker is told. Pickled to it."""

    spec: SimulationSpec

    @property
    def seed(self) -> int:
        return self.spec.seed


class CodecReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    seed: int
    difference: str | None
    """In words; None: there is none."""


def compare_codecs(task: CodecTask) -> CodecReport:
    """Run the specification with both codecs, and compare. Raises what ``simulate`` raises."""
    by_reference, real = (simulate(replace(task.spec, real_codec=real)) for real in (False, True))
    return CodecReport(seed=task.seed, difference=difference(by_reference, real))


def difference(by_reference: SimulationResult, real: SimulationResult) -> str | None:
    """Return how the run with the real codec differs, None when it does not."""
    hashes = [trace_hash(run.entries, with_sizes=False) for run in (by_reference, real)]
    if hashes[0] != hashes[1]:
        difference_of_traces = first_difference(
            without_sizes(by_reference.events), without_sizes(real.events)
        )
        return f"the trace has another hash than by reference: {' '.join(str(difference_of_traces).split())}"
    verdicts = [run.outcome.verdict.value for run in (by_reference, real)]
    if verdicts[0] != verdicts[1]:
        return f"the verdict is {verdicts[1]}, by reference it is {verdicts[0]}"
    return None


def without_sizes(events: Sequence[Event]) -> list[Event]:
    """Return the events as the hash sees them."""
    return [
        msgspec.structs.replace(event, detail=None) if event.kind in MEASURED else event
        for event in events
    ]
