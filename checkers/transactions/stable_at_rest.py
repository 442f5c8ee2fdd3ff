"""The last stable offset reaches the high watermark once all transactions have ended.

**last-stable-offset-at-rest**: at the end of a run, the last stable offset that a leader answers to the last reader of
committed records reaches the high watermark of the same answer. A partition is judged if it stayed below for longer,
without faults, than a transaction may last (``overdue``). Smallest break: a last stable offset of 5 with a high
watermark of 9, from a second after all faults to the end.

Why this is the promise: consumers of committed records wait for the last stable offset. Before the last reads, a new
producer of each transactional id has aborted what was open, and no client begins a transaction after that.

What a correct cluster does and is not convicted for: it takes its time to end transactions. A partition that was behind
for a shorter time, and what the machine may have delayed, is ``unknown``; so is every partition that is behind where a
fault moved a wall clock, or where its time-outs are not recorded. Where the end of a transaction may be lost, because
the last replica of the partition or of one of ``__transaction_state`` was struck, the finding is allowed.

Limit: what held the last stable offset is in the history (``open-transaction``), and does not change the verdict.
Source: KIP-98, KIP-664, KIP-890; KAFKA-14402.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS
from nemesis.checkers.breaks import transactions_at_rest as breaks
from nemesis.checkers.explain import transactions as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.transactions.overdue import MS, RunTime
from nemesis.checkers.transactions.produced import INIT, POLL
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.transactions import LAST_READER


class StableAtRest(EventListCheck):
    kinds = frozenset({*CLIENT_KINDS, *losses.KINDS, *unexplained.KINDS})
    columns = (
        *("f", "topic", "partition", "topic_id", "last_stable_offset", "high_watermark"),
        *("timeout_ms", *losses.COLUMNS, *unexplained.COLUMNS),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LAST_STABLE_OFFSET_AT_REST,)

    def reduce(self, segment: Segment) -> list[Row]:
        """Keep of the clients' operations what the last reader was answered, and time-outs."""
        is_answer = segment.is_kind(Kind.OK) & segment.is_word("f", {POLL})
        is_last = is_answer & segment.is_word("process", {LAST_READER})
        wanted = ~segment.is_kind(*CLIENT_KINDS) | is_last | segment.is_word("f", {INIT})
        return super().reduce(segment.where(wanted)) if wanted.any() else []

    def judge(self, rows: list[Row]) -> Results:
        polls: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
        for row in rows:
            event = row[1]
            last = -1 if event.last_stable_offset is None else event.last_stable_offset
            if event.f == POLL and last >= 0:
                polls[tp_name(event.topic, event.partition), event.topic_id].append(row)
        permitted = losses.Losses(rows)
        run = RunTime([item for item in rows if item[1].kind in unexplained.KINDS])
        timeouts_ms = [
            event.timeout_ms for _, event in rows if event.f == INIT and event.timeout_ms
        ]
        bound_ms = run.bound_ms(max(timeouts_ms, default=None))
        findings = [
            permitted.allow(_behind(tp, held, run, bound_ms), tp, losses.TRANSACTIONS_TOPIC)
            for (tp, _), answers in sorted(polls.items(), key=str)
            if (held := _held(answers))
        ]
        return conclude(LAST_STABLE_OFFSET_AT_REST, checked=len(polls), findings=findings)


def _held(answers: Sequence[Row]) -> list[Row]:
    """Return the last answers that have one last stable offset below the high watermark."""
    last = answers[-1][1].last_stable_offset
    held = takewhile(
        lambda item: (
            item[1].last_stable_offset == last < (item[1].high_watermark or 0)  # type: ignore[operator]
        ),
        reversed(answers),
    )
    return list(held)[::-1]


def _behind(tp: str, held: Sequence[Row], run: RunTime, bound_ms: int | None) -> Finding:
    """Say of a partition that is behind whether it has been for too long."""
    (first_row, first), (last_row, last) = held[0], held[-1]
    since, end = max(run.last_window[0], first.time), run.measured_until(last.time)
    doubt, lasted_ms = run.doubt(since, end, bound_ms), max(end - since, 0) // MS
    sentence = (
        f"The last stable offset of {tp} stayed at {last.last_stable_offset} for {lasted_ms:,} ms without "
        f"a fault, below the high watermark {last.high_watermark}, though all producers had ended"
    )
    sentence += f"; {doubt}." if doubt else f". A transaction may last {bound_ms:,} ms."
    verdict = Verdict.UNKNOWN if doubt else Verdict.INVALID
    about = dict.fromkeys([first_row, last_row])
    return finding(LAST_STABLE_OFFSET_AT_REST.name, tp, sentence, *about, verdict=verdict)


LAST_STABLE_OFFSET_AT_REST: Final = Property(
    name="last-stable-offset-at-rest",
    promise="When all transactions have ended, readers of committed records reach the high watermark.",
    unit="partitions",
    unknown="No partition was read by the last reader of committed records, or one may still have an open transaction.",
    source="KIP-98, KIP-664, KIP-890; UnifiedLog.lastStableOffset.",
    check=StableAtRest,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.HARNESS, EventSource.FAULTS}),
    workloads=frozenset({"transactions"}),
    recorded_since=11,
    reason=explain.last_stable_offset_at_rest,
    breaks=breaks.LAST_STABLE_OFFSET_AT_REST,
)
"""The property."""
