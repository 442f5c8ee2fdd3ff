"""What clients felt: how many operations ended how, and how long they took.

An operation is an ``invoke`` and its completion, paired by process and ``op``. It is counted where it
completed and its latency drawn where it was invoked, so that an operation that hung shows at the fault it hung in. An
operation without completion has no latency; it is counted as ``open``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.history.events import Kind
from nemesis.reports.sampling import Floats, bounds
from nemesis.reports.series import NS

FINAL_QUESTIONS: Final = "final-times-"
"""Begins the names of the processes that ask all replicas when the load has ended: a peak, and no load."""
OUTCOMES: Final = (Kind.OK.value, Kind.FAIL.value, Kind.INFO.value)


@dataclass(frozen=True, slots=True)
class Operations:
    """The completed operations of one function (``send``, ``poll``, ...), by time of invocation."""

    invoked_s: Floats
    latency_s: Floats
    outcome: Numbers
    """Index into ``OUTCOMES``."""
    open: int
    """How many were invoked and never completed."""

    def __len__(self) -> int:
        return len(self.invoked_s)

    def counts(self) -> dict[str, int]:
        """How many ended how, ``open`` included."""
        ended = np.bincount(self.outcome, minlength=len(OUTCOMES)).tolist()
        return {**dict(zip(OUTCOMES, ended, strict=True)), "open": self.open}


def operations(rows: Segment, origin_ns: int) -> Mapping[str, Operations]:
    """Return the operations of each function, the most frequent first; without the questions at the very end."""
    own = rows.where(rows.is_kind(Kind.INVOKE, *OUTCOMES) & (rows.numbers("op") >= 0))
    own = _without_questions(own) if len(own) else own
    if not len(own):
        return {}
    function, names = own.codes("f")
    invoke, time = own.is_kind(Kind.INVOKE), own.numbers("time")
    begun, ended = pairs(own.codes("process")[0], own.numbers("op"), invoke)
    outcome = np.zeros(len(own), dtype=np.int64)
    for number, kind in enumerate(OUTCOMES):
        outcome[own.is_kind(kind)] = number
    by_time = np.argsort(time[begun], kind="stable")
    begun, ended = begun[by_time], ended[by_time]
    start, stop, ending, of = time[begun], time[ended], outcome[ended], function[begun]
    by_function: dict[str, Operations] = {}
    for code, name in enumerate(names):
        invoked = int(np.count_nonzero(invoke & (function == code)))
        if invoked:
            of_function = of == code
            begins = start[of_function]
            by_function[name] = Operations(
                invoked_s=(begins - origin_ns) / NS,
                latency_s=(stop[of_function] - begins) / NS,
                outcome=ending[of_function],
                open=invoked - len(begins),
            )
    return dict(sorted(by_function.items(), key=lambda item: -len(item[1])))


def pairs(process: Numbers, op: Numbers, invoke: Mask) -> tuple[Numbers, Numbers]:
    """Return the rows of the invocations that were completed, and those of their completions, in any order."""
    return _pairs_by_number(process, op, invoke) or _pairs_sorted(process, op, invoke)


def _pairs_by_number(process: Numbers, op: Numbers, invoke: Mask) -> tuple[Numbers, Numbers] | None:
    """The pairs where processes share the numbers of operations, as in external histories: nothing has to be sorted.

    None where a number begins or ends twice, or numbers are far apart.
    """
    if op.max() > 2 * len(op):
        return None
    begun, ended = np.flatnonzero(invoke), np.flatnonzero(~invoke)
    begins, ends = (np.full(int(op.max()) + 1, -1, dtype=np.int64) for _ in range(2))
    begins[op[begun]], ends[op[ended]] = begun, ended
    if np.count_nonzero(begins >= 0) < len(begun) or np.count_nonzero(ends >= 0) < len(ended):
        return None
    is_pair = (begins >= 0) & (ends >= 0)
    first, second = begins[is_pair], ends[is_pair]
    return (first, second) if np.array_equal(process[first], process[second]) else None


def _pairs_sorted(process: Numbers, op: Numbers, invoke: Mask) -> tuple[Numbers, Numbers]:
    permutation = np.lexsort((~invoke, op, process))
    first, second = permutation[:-1], permutation[1:]
    paired = invoke[first] & ~invoke[second]
    paired &= (process[first] == process[second]) & (op[first] == op[second])
    return first[paired], second[paired]


def _without_questions(own: Segment) -> Segment:
    process, names = own.codes("process")
    questions = [code for code, name in enumerate(names) if name.startswith(FINAL_QUESTIONS)]
    return own.where(~np.isin(process, questions)) if questions else own


def rates(
    completed_s: Floats, outcome: Numbers, duration_s: float, width_s: float
) -> tuple[Floats, dict[str, Floats]]:
    """Return the middles of the bins in seconds, and per outcome the operations per second of each bin."""
    bins = max(1, int(np.ceil(duration_s / width_s)))
    bin_of = np.minimum((completed_s / width_s).astype(np.int64), bins - 1)
    counts = np.bincount(outcome * bins + bin_of, minlength=bins * len(OUTCOMES))
    per_s = dict(zip(OUTCOMES, counts.reshape(len(OUTCOMES), bins) / width_s, strict=True))
    return np.asarray((np.arange(bins) + 0.5) * width_s, dtype=np.float64), per_s


def quantiles(
    invoked_s: Floats, latency_s: Floats, width_s: float, wanted: tuple[float, ...]
) -> tuple[Floats, list[Floats]]:
    """Return the middles of the bins that hold operations, and each wanted quantile (nearest rank) of the latencies.

    ``invoked_s`` ascends.
    """
    bin_of = (invoked_s / width_s).astype(np.int64)
    starts, stops = bounds(bin_of)
    ranked = latency_s.copy()
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        ranked[start:stop].sort()
    latencies = [
        ranked[starts + np.ceil(share * (stops - starts)).astype(np.int64).clip(1) - 1]
        for share in wanted
    ]
    return np.asarray((bin_of[starts] + 0.5) * width_s, dtype=np.float64), latencies
