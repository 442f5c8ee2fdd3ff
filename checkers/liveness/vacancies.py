"""While ``/controller`` does not exist, a broker that can create it does so in time.

**controller-elected-in-time**: while ``/controller`` does not exist and a broker lives, is registered and connected to
ZooKeeper, and no fault keeps it from ZooKeeper, some broker creates ``/controller`` within the session time-out and a
tick. Each of these brokers watches ``/controller``, for as long as it lives: one that never was the controller, and one
that was and has resigned.
Smallest break: the session of controller 1 has expired; broker 2 is registered, connected and not struck by any fault;
``/controller`` is created 18 ms later, where the session time-out is 3 ms and a tick 1 ms.

Why the bound holds: ZooKeeper tells every watcher that the znode is gone. A broker that hears of it does nothing but
read the znode and create it, and waits for nothing but ZooKeeper. If ZooKeeper does not answer for a session time-out,
the broker loses its session, and is no longer registered and connected.

ZooKeeper's order says which deletion of ``/controller`` and which creation belong together, and has no time that could
be compared with the brokers'. The vacancy counts from the earliest moment at which the deletion had certainly happened:
a broker traced its zxid or a later one; the owner traced that its session had expired; or the owner was killed or
paused, and stayed so for the session time-out and a tick, after which ZooKeeper expired its session. A leader of
ZooKeeper that is deposed may say that a session has expired and not end it; its successor gives each session its full
time-out again. So after a fault of ZooKeeper's members the bound is added to what the owner traced. It counts up to
the latest moment at which the creation had certainly not happened yet: the winner traced that the session in which it
created the znode had begun, or, if no fault kept ZooKeeper's answer from the winner, that it was elected.

What a correct cluster does and is not convicted for: nothing happens while the only brokers that live are paused, cut
off or not registered yet (``candidates``); faults of links, of ZooKeeper and of disks explain everything while they are
in force; others explain what the brokers do that they strike. What the machine may explain is ``unknown``, and up to
100 ms of it are not a finding.

Limits: that a vacancy lasts until the end of the run is ``convergence``'s; so is the wait for the first controller.
A vacancy whose beginning or end left no trace is not judged, nor one in which a broker traced an election that
ZooKeeper's log lacks.
Source: KafkaController (ControllerChangeHandler, Reelect, maybeResign): the handler of ``/controller`` stays registered
when a controller resigns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nemesis.checkers import znodes
from nemesis.checkers.breaks import vacancies as breaks
from nemesis.checkers.explain import vacancies as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness import candidates, unexplained
from nemesis.checkers.liveness.recovery_bound import session_bound_ms
from nemesis.checkers.liveness.time_spans import Spans, complement, intersection, spans
from nemesis.checkers.zxid_times import ZxidTimes
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_SILENCING: Final = frozenset({"kill", "kill-controller", "pause"})
"""The kinds of faults after which ZooKeeper hears nothing of the broker until they end."""
_EXPIRED: Final = "expired"
_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Vacancy:
    """There was no ``/controller`` between two transactions."""

    taken: Event
    """The creation of the znode that was deleted."""
    deleted: Row
    created: Row
    """The next creation."""

    def contains(self, zxid: int) -> bool:
        """Whether the transaction lies between the two; if it is an election, the log lacks it."""
        return (self.deleted[1].zxid or 0) < zxid < (self.created[1].zxid or 0)


class Wait(NamedTuple):
    """A broker could create ``/controller``, and no broker did, in ns."""

    process: str
    since: int
    until: int


class Vacancies(EventListCheck):
    kinds = frozenset(
        {
            Kind.ZNODE,
            Kind.SESSION_CLOSED,
            Kind.LEADER_ELECTED,
            Kind.ALTER_PARTITION_HANDLED,
            Kind.ZNODE_OUTCOME,
            *candidates.KINDS,
            *unexplained.KINDS,
        }
    )
    columns = (*znodes.COLUMNS, *candidates.COLUMNS, "reason", "targets", *unexplained.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CONTROLLER_ELECTED_IN_TIME,)

    def judge(self, rows: list[Row]) -> Results:
        bound = session_bound_ms(rows)
        if bound is None:
            return conclude(CONTROLLER_ELECTED_IN_TIME, checked=0)
        elections = sum(znodes.is_election(event) for _, event in znodes.epoch_changes(rows))
        able, clues = candidates.candidates(rows), Clues(rows, bound * _MS)
        findings: list[Finding] = []
        longest = vacancies = judged = 0
        for vacancy in _vacancies(rows):
            vacancies += 1
            if any(vacancy.contains(zxid) for zxid in clues.won):
                continue
            wait = _longest_wait(vacancy, clues, able)
            if wait is not None:
                judged += 1
                longest = max(longest, wait.until - wait.since)
                findings += _findings(rows, vacancy, wait, bound)
        numbers = {
            "bound_ms": float(bound),
            "longest_wait_ms": longest / _MS,
            "vacancies": float(vacancies),
            "judged": float(judged),
        }
        return conclude(
            CONTROLLER_ELECTED_IN_TIME, checked=elections, findings=findings, numbers=numbers
        )


class Clues:
    """When deletions of ``/controller`` had happened, and when creations had not."""

    def __init__(self, rows: Sequence[Row], bound_ns: int) -> None:
        self.faults = [item for item in rows if item[1].fault is not None]
        self.won = {
            event.zxid or 0: event for _, event in rows if event.kind == Kind.CONTROLLER_ELECTED
        }
        """What the winners of elections traced, by zxid."""
        self._bound_ns = bound_ns
        self._times = ZxidTimes(rows)
        self._owners = znodes.session_owners(rows)
        self._expired = {
            event.zxid
            for _, event in rows
            if event.kind == Kind.SESSION_CLOSED and event.reason == _EXPIRED
        }
        self._explained = candidates.explaining(self.faults)
        self._unsettled = candidates.unsettling(self.faults)
        self._starts = [event for _, event in rows if event.kind == Kind.BROKER_STARTED]
        self._sessions = sorted(
            (event for _, event in rows if event.kind == Kind.SESSION_STATE),
            key=lambda event: (event.time, event.seq),
        )
        ends = [event.time for _, event in rows if event.phase == "end"]
        self._end = unexplained.measured_until(rows, ends[-1]) if ends else None

    def gone_since(self, vacancy: Vacancy) -> int | None:
        """Return the earliest time (ns) at which the znode had certainly been deleted; None if nothing tells."""
        _, deleted = vacancy.deleted
        known = [self._times.known(deleted.zxid), self._silent_since(vacancy)]
        known += [
            self._ended(event.time)
            for event in self._sessions
            if event.session_state == _EXPIRED and event.session == vacancy.taken.session
        ]
        return min((time for time in known if time is not None), default=None)

    def _ended(self, traced: int) -> int | None:
        """When a session had certainly ended whose owner traced so; None if ZooKeeper's members were struck after."""
        if not len(_overlap(self._unsettled, traced - self._bound_ns, traced)):
            return traced
        ended = traced + self._bound_ns
        return None if len(_overlap(self._unsettled, traced, ended)) else ended

    def absent_until(self, vacancy: Vacancy, since: int) -> int | None:
        """Return the latest time (ns) at which the znode had certainly not been created again; None if nothing tells.

        The end of the run ends every vacancy: brokers are stopped then.
        """
        _, created = vacancy.created
        known = [
            event.time
            for event in self._sessions
            if event.session_state != _EXPIRED and event.session == created.session
        ][:1]
        winner = self.won.get(created.zxid or 0)
        if winner is not None and self._is_free(winner.process, since, winner.time):
            known.append(winner.time)
        until = max(known, default=None)
        return until if until is None or self._end is None else min(until, self._end)

    def _is_free(self, process: str, since: int, until: int) -> bool:
        """Whether no fault may have kept the broker from ZooKeeper, and ZooKeeper's answer from the broker."""
        return not len(_overlap(candidates.kept_from_zookeeper(self.faults, process), since, until))

    def _silent_since(self, vacancy: Vacancy) -> int | None:
        """When ZooKeeper had expired the session of an owner that was killed or paused and stayed so until then."""
        if vacancy.deleted[1].zxid not in self._expired:
            return None
        node = self._owners.get(vacancy.taken.session or 0)
        process = next((e.process for e in self._sessions if e.node == node), None)
        for _, event in self.faults:
            is_strike = event.kind == Kind.FAULT_APPLIED and event.fault in _SILENCING
            if not is_strike or process is None or process not in (event.targets or ()):
                continue
            until = event.time + self._bound_ns
            is_explained = len(_overlap(self._explained, event.time, until)) > 0
            if (
                self._session_at(process, event.time) == vacancy.taken.session
                and not is_explained
                and self._is_silent(process, event.time, until)
            ):
                return until
        return None

    def _session_at(self, process: str, time: int) -> int | None:
        sessions = [e.session for e in self._sessions if e.process == process and e.time <= time]
        return sessions[-1] if sessions else None

    def _is_silent(self, process: str, since: int, until: int) -> bool:
        """Whether the fault that struck the broker then was still in force, and no new process had been started."""
        struck = unexplained.explained(
            item for item in self.faults if candidates.strikes(item[1], process)
        )
        is_struck = any(start <= since and until <= stop for start, stop in struck.tolist())
        return is_struck and not any(
            since < event.time <= until for event in self._starts if event.process == process
        )


def _overlap(table: Spans, start: int, stop: int) -> Spans:
    return intersection(table, spans([(start, stop)]))


def _vacancies(rows: Sequence[Row]) -> Iterator[Vacancy]:
    """Yield the vacancies that ended, in ZooKeeper's order."""
    taken: Event | None = None
    deleted: Row | None = None
    for row, event in znodes.changes(rows):
        if event.path != znodes.CONTROLLER:
            continue
        if event.zk_op == "create":
            if taken is not None and deleted is not None:
                yield Vacancy(taken, deleted, (row, event))
            taken, deleted = event, None
        elif event.zk_op == "delete" and taken is not None:
            deleted = (row, event)


def _longest_wait(vacancy: Vacancy, clues: Clues, able: dict[str, Spans]) -> Wait | None:
    """Return the longest time for which a broker could have ended the vacancy; None if no broker is known to."""
    since = clues.gone_since(vacancy)
    until = None if since is None else clues.absent_until(vacancy, since)
    if since is None or until is None or until <= since:
        return None
    waits = [
        Wait(process, start, stop)
        for process, able_spans in sorted(able.items())
        for start, stop in _free_spans(clues.faults, process, able_spans, since, until)
    ]
    return max(waits, key=lambda wait: wait.until - wait.since, default=None)


def _free_spans(
    faults: Sequence[Row], process: str, able: Spans, since: int, until: int
) -> list[tuple[int, int]]:
    free = complement(candidates.kept_from_zookeeper(faults, process), since, until)
    return [(int(start), int(stop)) for start, stop in intersection(able, free).tolist()]


def _findings(
    rows: Sequence[Row], vacancy: Vacancy, wait: Wait, bound_ms: int
) -> Iterator[Finding]:
    waited = (wait.until - wait.since) // _MS
    over = waited - bound_ms
    if over <= 0:
        return
    excuse = unexplained.excuse(rows, wait.since, wait.until, over)
    if excuse is not None and over <= unexplained.MAX_LAG_MS:
        return
    registered = [
        row
        for row, event in rows
        if event.kind == Kind.BROKER_REGISTERED
        and event.process == wait.process
        and event.time <= wait.since
    ]
    sentence = (
        f"No broker created /controller for {waited:,} ms after the znode of broker {vacancy.taken.controller_id} "
        f"was gone, in which {wait.process} was registered and connected to ZooKeeper and no fault prevented it; the "
        f"configuration allows at most {bound_ms:,} ms."
    )
    yield finding(
        CONTROLLER_ELECTED_IN_TIME.name,
        znodes.CONTROLLER,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        *registered[-1:],
        vacancy.deleted[0],
        vacancy.created[0],
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


CONTROLLER_ELECTED_IN_TIME: Final = Property(
    name="controller-elected-in-time",
    promise="While /controller does not exist, a broker that can create it does so within the session time-out.",
    unit="elections",
    unknown="The harness did not record the time-outs, no controller was elected, or the machine was slow.",
    source="KafkaController (ControllerChangeHandler, Reelect, maybeResign).",
    check=Vacancies,
    decided_from=frozenset(
        {EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}
    ),
    recorded_since=4,
    reason=explain.controller_elected_in_time,
    breaks=breaks.CONTROLLER_ELECTED_IN_TIME,
)
