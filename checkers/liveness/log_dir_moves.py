"""Replicas move to the log directories that administrators ask for, and only there (KIP-113).

**log-dir-moves-end**: (a) the log of a replica moves only to a directory to which an AlterReplicaLogDirs request of
that replica, sent before, may have moved it.
(b) A replica is in the directory of its last request at the end, if the broker answered the request without an error
and lives, and has had time to copy since: what moved on the broker since the answer, in the sizes at the end, at
``replica.alter.log.dirs.io.max.bytes.per.second``, and one ``replica.fetch.backoff.ms``.
Smallest breaks: (a) a replica moves to directory b, and no request named b; (b) broker 1 answers a request to move
t-0 to directory b at 2 ms, has 10 bytes and may copy 10,000 a second, and the log is still in a when the run ends at
9 ms.

Why the bound holds: a broker copies the logs that move in turns, as fast as its quota permits, and never waits while
one of them has something to copy. It lets the copy take the place of the log in the step in which both end at the
same offset. So as long as one replica has not moved, the broker has copied all the time. Time counts where no fault is
in force and the process has taken a role of the replica since it started. A broker that restarts goes on with the copy
that it has on disk. A log that was truncated since may have been copied again.

What a correct cluster does and is not convicted for: a request whose outcome is not known, after the one that was
answered; a replica that was stopped or deleted since; a request whose client knew no id of the topic, or that of an
earlier one (AlterReplicaLogDirs has names alone); a broker of
which any log directory has failed in that incarnation or later, or which has lost its power or the end of a log since;
a topic that was created again. What the machine may explain is ``unknown``.

Limits: what is copied is judged by ``log-matching`` and ``final-logs``. Where the quota is low, and replicas move all
the time, as in simulations of ``log-dirs``, the bound of (b) is longer than most runs.
Source: ReplicaAlterLogDirsThread, LogManager.replaceCurrentWithFutureLog of Kafka 3.9; KIP-113, KAFKA-8001.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import log_dir_moves as breaks
from nemesis.checkers.explain import log_dir_moves as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import left_logs, unexplained
from nemesis.checkers.liveness.log_ends import MS
from nemesis.checkers.liveness.time_spans import complement, intersection, spans
from nemesis.checkers.power_cuts import LOSING
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import FETCH_BACKOFF, MOVE_QUOTA

_REQUEST: Final = "alter-log-dir"
_OPERATIONS: Final = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})
_LOCATED: Final = frozenset({Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED})
_FOREVER: Final = 2**63 - 1
_ROLES: Final = frozenset({Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER})
_STORED: Final = frozenset({Kind.STORED_LOG})
_OF_REPLICAS: Final = _LOCATED | _ROLES | _STORED | {Kind.REPLICA_STOPPED, Kind.TRUNCATE}

Key = tuple[int | None, str | None, str | None, int | None]
"""Broker, topic, topic id, partition."""
Outcomes = dict[tuple[str, int | None], Row]
"""The completion of each request, by process and operation."""
Rows = Sequence[Row]


@dataclass(slots=True)
class Replica:
    """What is known of a broker's replica, in order of time."""

    requests: list[Row] = field(default_factory=list)
    """The invocations, each with the completion's kind in ``outcomes``."""
    events: list[Row] = field(default_factory=list)

    def last(self, kinds: frozenset[Kind]) -> Row | None:
        return next((item for item in reversed(self.events) if item[1].kind in kinds), None)


class LogDirMoves(EventListCheck):
    kinds = (
        _OPERATIONS | _OF_REPLICAS | left_logs.OF_RUN | {Kind.STORED_SEGMENT, Kind.LOG_DIR_FAILED}
    )
    columns = (
        *("node", "topic", "topic_id", "partition", "incarnation", "f", "op", "log_dir", "step"),
        *("alive", "error", "count", "offset", "zk_op", "path", "data", "targets"),
        *unexplained.COLUMNS,
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOG_DIR_MOVES_END,)

    def reduce(self, segment: Segment) -> list[Row]:
        operations = segment.only(_OPERATIONS)
        asked = operations.where(operations.is_word("f", {_REQUEST}))
        others = segment.only(self.kinds - _OPERATIONS)
        return [*others.events(*self.columns), *asked.events(*self.columns)]

    def judge(self, rows: list[Row]) -> Results:
        ordered = sorted(rows, key=lambda item: (item[1].time, item[1].seq))
        replicas, outcomes = _replicas(ordered)
        checked = sum(event.kind in _LOCATED for _, event in rows)
        findings: list[Finding] = []
        for replica in replicas.values():
            findings += _uninvited(replica)
        run = left_logs.run_of(ordered)
        if run is not None:
            for key in replicas:
                findings += _unfinished(key, replicas, outcomes, run, ordered)
        return conclude(LOG_DIR_MOVES_END, checked=checked, findings=findings)


def _replicas(
    rows: Rows,
) -> tuple[dict[Key, Replica], Outcomes]:
    """Return the replicas, and the completion of each request by process and operation."""
    replicas: dict[Key, Replica] = defaultdict(Replica)
    outcomes: Outcomes = {}
    for row, event in rows:
        key = _key(event)
        if event.kind == Kind.INVOKE:
            replicas[key].requests.append((row, event))
        elif event.kind in _OPERATIONS:
            outcomes[event.process, event.op] = (row, event)
        elif event.kind in _OF_REPLICAS and event.topic is not None:
            replicas[key].events.append((row, event))
    _share_requests(replicas, outcomes)
    return replicas, outcomes


def _share_requests(replicas: Mapping[Key, Replica], outcomes: Outcomes) -> None:
    """Requests name the topic, and a client may know no id or an earlier one: they count for each topic of the name,
    unless they were answered before its replica existed.
    """
    by_name: dict[tuple[int | None, str | None, int | None], list[Row]] = defaultdict(list)
    for (node, topic, _, partition), replica in replicas.items():
        by_name[node, topic, partition] += replica.requests
    for (node, topic, topic_id, partition), replica in replicas.items():
        begun = replica.events[0][1].time if replica.events else 0
        requests = [
            (row, request)
            for row, request in by_name[node, topic, partition]
            if request.topic_id in (topic_id, None) or _ended(request, outcomes) >= begun
        ]
        replica.requests = sorted(requests, key=lambda item: (item[1].time, item[1].seq))


def _ended(request: Event, outcomes: Outcomes) -> int:
    """Return when a request certainly had no effect any more, in ns."""
    outcome = outcomes.get((request.process, request.op))
    return _FOREVER if outcome is None or outcome[1].kind == Kind.INFO else outcome[1].time


def _uninvited(replica: Replica) -> Iterator[Finding]:
    """Part (a)."""
    for row, event in replica.events:
        is_asked = any(
            request.log_dir == event.log_dir and request.time <= event.time
            for _, request in replica.requests
        )
        if event.kind != Kind.LOG_DIR_CHANGED or is_asked:
            continue
        tp = tp_name(event.topic, event.partition)
        sentence = f"Broker {event.node} moved its replica of {tp} to {event.log_dir}, which no request had named."
        yield finding(LOG_DIR_MOVES_END.name, tp, sentence, row)


def _unfinished(
    key: Key, replicas: Mapping[Key, Replica], outcomes: Outcomes, run: left_logs.Run, rows: Rows
) -> Iterator[Finding]:
    """Part (b)."""
    node, replica = key[0], replicas[key]
    answer = _last_answer(replica, outcomes)
    located, stored = replica.last(_LOCATED), replica.last(_STORED)
    if answer is None or located is None or stored is None or node is None:
        return
    row, wanted = answer
    is_left = stored[1].alive and succeeded(stored[1])
    is_there = located[1].log_dir == wanted.log_dir
    bound_ms = _bound_ms(node, wanted.time, replicas, rows, run)
    if is_there or not is_left or bound_ms is None or _is_excused(node, replica, wanted, rows):
        return
    had_ms = _served_ns(replica, wanted.time, run, rows) // MS
    over_ms = had_ms - bound_ms
    excuse = unexplained.excuse(run.rows, wanted.time, run.until, over_ms)
    if over_ms <= 0 or (excuse is not None and over_ms <= unexplained.MAX_LAG_MS):
        return
    tp = tp_name(key[1], key[3])
    sentence = (
        f"Broker {node} answered that it moves its replica of {tp} to {wanted.log_dir}, and at the end the replica is "
        f"in {located[1].log_dir}. The broker served it for {had_ms:,} ms without a fault, and may take "
        f"{bound_ms:,} ms to copy all that moved."
    )
    yield finding(
        LOG_DIR_MOVES_END.name,
        tp,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        row,
        located[0],
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


def _served_ns(replica: Replica, since: int, run: left_logs.Run, rows: Rows) -> int:
    """Return for how long since the answer no fault was in force and the process had a role of the replica."""
    (node,) = {event.node for _, event in replica.events}
    roles = [event.time for _, event in replica.events if event.kind in _ROLES]
    starting = [
        (event.time, min((time for time in roles if time >= event.time), default=run.until))
        for _, event in rows
        if event.kind == Kind.BROKER_STARTED and event.node == node and event.time > since
    ]
    free = spans(unexplained.without_faults(run.rows, until="end"))
    served = intersection(free, complement(spans(starting), since, run.until))
    return int((served[:, 1] - served[:, 0]).sum())


def _last_answer(replica: Replica, outcomes: Outcomes) -> Row | None:
    """Return the answer to the last request, leaving out those that failed.

    None if its outcome is not known, or if it may have been meant for another topic of the name.
    """
    answers: list[Row | None] = []
    topic_ids = {event.topic_id for _, event in replica.events}
    for _, request in replica.requests:
        if {request.topic_id} != topic_ids:
            answers.append(None)
            continue
        answer = outcomes.get((request.process, request.op))
        if answer is None or answer[1].kind != Kind.FAIL:
            answers.append(answer)
    last = answers[-1] if answers else None
    return last if last is not None and last[1].kind == Kind.OK else None


def _bound_ms(
    node: int, since: int, replicas: Mapping[Key, Replica], rows: Rows, run: left_logs.Run
) -> int | None:
    """Return how long the broker may take to copy what moved since then; None if the settings are not known."""
    backoffs = [event.duration_ms for _, event in run.rows if event.setting == FETCH_BACKOFF]
    quota = run.stated.get(MOVE_QUOTA)
    if not quota or not backoffs or backoffs[0] is None:
        return None
    sizes: dict[Key, int] = defaultdict(int)
    for _, event in rows:
        if event.kind == Kind.STORED_SEGMENT and event.node == node:
            sizes[_key(event)] += event.count or 0
    copied = sum(
        size * _copies(replicas[key], since) for key, size in sizes.items() if key in replicas
    )
    return 1000 * copied // quota + backoffs[0]


def _copies(replica: Replica, since: int) -> int:
    """Return how often the log may have been copied since then: for each request, and again once it was truncated."""
    after = sum(request.time > since for _, request in replica.requests)
    cuts = sum(e.kind == Kind.TRUNCATE and e.time > since for _, e in replica.events)
    return (after + int(_is_moving(replica, since))) * (1 + cuts)


def _is_moving(replica: Replica, time: int) -> bool:
    """Whether the last request until then had named another directory than that of the log."""
    named = [request.log_dir for _, request in replica.requests if request.time <= time]
    held = [e.log_dir for _, e in replica.events if e.kind in _LOCATED and e.time <= time]
    return named[-1:] != held[-1:] and bool(named)


def _is_excused(node: int, replica: Replica, wanted: Event, rows: Rows) -> bool:
    """Whether the broker lost a directory, what it had not synced, or the replica, after the answer."""
    started = [
        event.time
        for _, event in rows
        if event.kind == Kind.BROKER_STARTED and event.node == node and event.time <= wanted.time
    ]
    stopped = any(
        event.kind == Kind.REPLICA_STOPPED and event.time > wanted.time
        for _, event in replica.events
    )
    failed = any(
        event.kind == Kind.LOG_DIR_FAILED
        and event.node == node
        and event.time >= max(started, default=0)
        for _, event in rows
    )
    lost = any(
        event.fault in LOSING
        and event.time > wanted.time
        and f"broker-{node}" in (event.targets or ())
        for _, event in rows
    )
    return stopped or failed or lost


def _key(event: Event) -> Key:
    return event.node, event.topic, event.topic_id, event.partition


LOG_DIR_MOVES_END: Final = Property(
    name="log-dir-moves-end",
    promise="A replica moves to the log directory that an administrator asks for, in time, and to no other one.",
    unit="logs that brokers opened or moved",
    unknown="No broker reported a log directory.",
    source="ReplicaAlterLogDirsThread, LogManager.replaceCurrentWithFutureLog; KIP-113, KAFKA-8001.",
    check=LogDirMoves,
    decided_from=left_logs.DECIDED_FROM | {EventSource.CLIENTS},
    recorded_since=9,
    reason=explain.log_dir_moves_end,
    breaks=breaks.LOG_DIR_MOVES_END,
)
