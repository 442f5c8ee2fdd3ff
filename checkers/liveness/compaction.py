"""Compacted topics are compacted.

* **compaction-runs**: of a replica that leads a compacted topic's partition, on a broker that lives until the end, the
  dirty part of the log's files is not more than ``min.cleanable.dirty.ratio`` of what can be compacted, or has been
  more for no longer than twice ``log.cleaner.backoff.ms``. What can be compacted: the segments before the last one that
  has records, up to the last stable offset. Dirty: those of them that the cleaner's checkpoint does not cover.
  Smallest break: the back-off is 5 ms, the ratio 0, the log has segments from offset 0 and 1 on and was never cleaned,
  reached offset 1 at 2 ms, and the run ends at 13 ms.

Why the bound holds: a cleaner that has nothing to do looks at all logs in each back-off, and one that has takes the
next log at once. The second back-off is for what it does meanwhile. Since when a log has been dirty follows from the
traces, as for ``retention-runs``.

What a correct cluster does and is not convicted for: nothing is compacted behind the first offset of a transaction that
is open, or whose marker is not committed; topics whose settings were not the same in the whole run, or that set a ratio
or a lag of their own; a ratio or a lag of brokers that was changed; a log that was opened, moved or truncated since;
damaged logs; brokers whose cleaner is disabled, or has a lag. What the machine may explain is ``unknown``.
Limit: that no more than this is removed is judged by ``lost-write``, that all of it is by ``log-files-agree``.
Source: LogCleaner, LogCleanerManager.grabFilthiestCompactedLog; Kafka's documentation of log compaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nemesis.checkers.breaks import compaction as breaks
from nemesis.checkers.explain import compaction as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness.left_logs import (
    DECIDED_FROM,
    OF_LOGS,
    OPENS,
    LeftLogs,
    Replica,
    Run,
    Traced,
    late,
    reached_by,
)
from nemesis.checkers.liveness.log_ends import MS
from nemesis.checkers.replication.replica_rows import TopicKey
from nemesis.history.events import Kind
from nemesis.history.vocabulary.harness import (
    CLEANABLE_PERCENTAGE,
    CLEANER_BACKOFF,
    CLEANER_ENABLED,
    COMPACTION_LAG,
)

_TRANSACTIONS: Final = frozenset({Kind.TRANSACTION_OPENED, Kind.MARKER_APPENDED})
_NEVER: Final = 2**63 - 1
_OF_BROKERS: Final = (CLEANABLE_PERCENTAGE, COMPACTION_LAG, "log.cleaner.max.compaction.lag.ms")
_OWN: Final = ("min.cleanable.dirty.ratio", "min.compaction.lag.ms", "max.compaction.lag.ms")


class Compaction(LeftLogs):
    depends_on = (CLEANER_BACKOFF, CLEANABLE_PERCENTAGE, CLEANER_ENABLED, COMPACTION_LAG)
    of_logs = OF_LOGS | _TRANSACTIONS
    kinds = LeftLogs.kinds | _TRANSACTIONS
    columns = (*LeftLogs.columns, "producer_id")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (COMPACTION_RUNS,)

    def conclude(self, checked: int, findings: list[Finding]) -> Results:
        return conclude(COMPACTION_RUNS, checked=checked, findings=findings)

    def judge(self, key: TopicKey, replica: Replica, traced: Traced, run: Run) -> Iterator[Finding]:
        settings = run.settings.get(key[0]) or {}
        is_compacted = settings.get("cleanup.policy") == "compact"
        has_own = any(name in settings for name in _OWN)
        is_changed = not run.changed.isdisjoint(_OF_BROKERS)
        if not is_compacted or has_own or is_changed or not _cleans_at_once(run):
            return
        backoff_ms = run.stated[CLEANER_BACKOFF]
        due = run.until - 2 * backoff_ms * MS
        end = _compactable(replica, traced, due)
        cleaned = replica.stored[1].cleaner_offset or 0
        if _dirty_percentage(replica, end, cleaned) <= run.stated[CLEANABLE_PERCENTAGE]:
            return
        waited_ms = (run.until - max(replica.opened[1].time, run.since)) // MS
        sentence = (
            f"Broker {replica.node} did not compact {tp_name(key[0], key[2])} in the last {waited_ms:,} ms: its log "
            f"could be compacted up to offset {end} longer ago than 2 times log.cleaner.backoff.ms, which is "
            f"{backoff_ms:,}, and is up to {cleaned}."
        )
        rows = (replica.opened[0], replica.stored[0], replica.first)
        since = replica.opened[1].time
        yield from late(COMPACTION_RUNS.name, key, run, since, 2 * backoff_ms, sentence, *rows)


def _cleans_at_once(run: Run) -> bool:
    return bool(run.stated[CLEANER_ENABLED]) and run.stated[COMPACTION_LAG] == 0


def _compactable(replica: Replica, traced: Traced, time: int) -> int:
    """Return the start of the last segment that had records, and was stable up to there, at a time (ns)."""
    opened = replica.opened[1]
    if opened.time >= time or replica.settled > opened.time:
        return 0
    end = reached_by(traced.ends, replica, time, opened.log_end_offset)
    mark = reached_by(traced.marks, replica, time, opened.high_watermark)
    stable = min(mark, _first_unstable(traced.rows, replica.node, time, mark))
    return max((base for base in replica.bases if base < end and base <= stable), default=0)


def _first_unstable(rows: Sequence[Row], node: int, time: int, mark: int) -> int:
    """Return the first offset of the transactions that a broker's log had open at a time (ns).

    A transaction stays unstable until its marker is below the high watermark ``mark``.
    """
    began: dict[int, int] = {}
    """By producer id, the first offsets of the open transactions."""
    ended: list[tuple[int, int, int]] = []
    """Producer id, first offset and offset of the marker."""
    for _, event in rows:
        if event.node != node or event.time >= time:
            continue
        producer, offset = event.producer_id or 0, event.offset or 0
        if event.kind == Kind.TRANSACTION_OPENED:
            began[producer] = offset
        elif event.kind == Kind.MARKER_APPENDED and producer in began:
            ended.append((producer, began.pop(producer), offset))
        elif event.kind in OPENS:
            # What the log has lost opens no transaction, and ends none.
            end = event.log_end_offset or 0
            began |= {producer: first for producer, first, marker in ended if marker >= end}
            began = {producer: first for producer, first in began.items() if first < end}
            ended = [item for item in ended if item[2] < end]
    uncommitted = (first for _, first, marker in ended if marker >= mark)
    return min([*began.values(), *uncommitted], default=_NEVER)


def _dirty_percentage(replica: Replica, end: int, cleaned: int) -> float:
    """Return how much of the segments before ``end`` lies behind where the log is compacted."""
    parts = zip(replica.bases[1:], replica.sizes[:-1], strict=True)
    before = [(behind, size) for behind, size in parts if behind <= end]
    dirty = sum(size for behind, size in before if behind > cleaned)
    return 100 * dirty / max(sum(size for _, size in before), 1)


COMPACTION_RUNS: Final = Property(
    name="compaction-runs",
    promise="A broker compacts the logs of compacted topics as soon as they are dirty enough.",
    unit="logs of living brokers, those that are not compacted among them",
    unknown="The harness did not record the settings, no log of a living broker was read, or the machine was slow.",
    source="LogCleaner, LogCleanerManager.grabFilthiestCompactedLog.",
    check=Compaction,
    decided_from=DECIDED_FROM,
    recorded_since=7,
    reason=explain.compaction_runs,
    breaks=breaks.COMPACTION_RUNS,
)
