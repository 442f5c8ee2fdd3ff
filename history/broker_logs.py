"""What a Kafka broker logs of its replicas, as events: roles, ends of logs, high watermarks, truncations.

log4j 2 writes the raw file, one JSON object per line with one ``write()``: ``t`` (``System.nanoTime()`` when the broker
logged it, which is ``CLOCK_MONOTONIC``), ``c`` (the logger) and ``m`` (the message). Before each start of the broker
its launcher adds a line with the logger ``nemesis``: it begins an incarnation.

The events are those that a reference broker traces, fewer of them and with fewer columns. What the log does not tell
stays unset: controller epochs, assigned replicas, producers, the CRC and on followers the epoch of a batch. ``isr``
and ``maximal_isr`` are both the committed ISR, because what a leader has proposed is logged too late. So a check sees
fewer members than the leader counted, never more.

Why the order may be trusted: Kafka logs an append and its end inside the lock of the log, before the follower can fetch
again and before a high watermark can pass it. A truncation is logged before it is done. The log's files name topics;
which topic of a name a replica belongs to is known from the lines that carry topic ids. A replica of which no line
carries one is left out: it never fetched.

Source: UnifiedLog, LogManager, Partition, AbstractFetcherManager of Kafka 3.9.1 and 4.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.history.events import Event, Kind
from nemesis.history.topic_ids import topic_id_of

LAUNCHER: Final = "nemesis"
"""The logger of the line that begins an incarnation."""
STATE_CHANGES: Final = "state.change.logger"
PARTITIONS: Final = "kafka.cluster.Partition"
LOG_MANAGER: Final = "kafka.log.LogManager"
FETCHERS: Final = "kafka.server.ReplicaFetcherManager"
LOGS: Final = ("kafka.log.UnifiedLog", "org.apache.kafka.storage.internals.log.UnifiedLog")
"""Until and from Kafka 4.0."""
FUTURE: Final = "-future"
LEADER, FOLLOWER = "leader", "follower"
MAX_PROBLEMS: Final = 3


class LogLine(msgspec.Struct):
    """A line of the raw file."""

    t: int
    """ns"""
    c: str
    """The logger."""
    m: str
    """The message."""
    min_insync_replicas: int | None = None
    """The launcher's line alone has this and the next one: settings of the broker."""
    unclean_leader_election_enable: bool | None = None


@dataclass(slots=True)
class _Log:
    """A log in one log directory, as the broker logged it."""

    start: int = 0
    end: int = 0
    high_watermark: int | None = None


@dataclass(slots=True)
class _Replica:
    """A replica from its log's opening until its deletion, in one incarnation of the broker."""

    directory: str
    logs: dict[str, _Log]
    """By log directory: a second one while the replica moves."""
    topic_id: str | None = None
    role: str | None = None
    leader_epoch: int | None = None
    isr: list[int] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def log(self) -> _Log:
        return self.logs[self.directory]


_Key = tuple[str, int]
"""Topic and partition."""


def read_broker_log(path: Path) -> tuple[list[Event], list[str]]:
    """Return the events of the broker whose file this is (``broker-2.jsonl``), and what is wrong with the file.

    Raises OSError.
    """
    lines, problems = _lines(path)
    reader = _Reader(path.stem)
    for line in sorted(lines, key=lambda line: line.t):
        try:
            reader.take(line)
        except _NotUnderstood as error:
            problems.append(f"{path}: {error}")
    return reader.events(), problems[:MAX_PROBLEMS]


class _NotUnderstood(Exception):
    """A line that should say what a replica did, and does not in the words that are known."""


def _lines(path: Path) -> tuple[list[LogLine], list[str]]:
    """Return the lines; one that a killed broker left torn, at the end or before the next start, does no damage."""
    decoder = msgspec.json.Decoder(LogLine)
    lines: list[LogLine] = []
    problems: list[str] = []
    torn: int | None = None
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        if not text:
            continue
        try:
            line = decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            line = None
        if torn is not None and (line is None or line.c != LAUNCHER):
            problems.append(f"{path} is damaged in line {torn}")
        torn = number if line is None else None
        if line is not None:
            lines.append(line)
    return lines, problems


class _Reader:
    """Goes through one broker's lines, in the order of their times."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._node = int(process.removeprefix("broker-"))
        self._incarnation: int | None = None
        self._replicas: dict[_Key, _Replica] = {}
        self._ended: list[_Replica] = []
        self._started: list[dict[str, Any]] = []
        self._seq = 0

    def events(self) -> list[Event]:
        """Return what was taken, in the order of the times."""
        columns = list(self._started)
        for replica in [*self._ended, *self._replicas.values()]:
            if replica.topic_id is not None:
                topic_id = topic_id_of(replica.topic_id)
                columns += [{**event, "topic_id": topic_id} for event in replica.events]
        return [Event(**event) for event in sorted(columns, key=lambda event: event["seq"])]

    def take(self, line: LogLine) -> None:
        """Take in one line; raises ``_NotUnderstood``."""
        self._seq += 1
        if line.c == LAUNCHER:
            self._start(line)
            return
        for pattern, handle in _HANDLERS.get(line.c, ()):
            if (match := pattern.search(line.m)) is not None:
                handle(self, line.t, match)
                return
        if line.c == STATE_CHANGES and _ROLE_CHANGE.search(line.m) is not None:
            raise _NotUnderstood(f"expected a role of a replica, got {line.m!r}")

    def _start(self, line: LogLine) -> None:
        self._ended += self._replicas.values()
        self._replicas = {}
        self._incarnation = line.t
        settings = {
            "min_insync_replicas": line.min_insync_replicas,
            "unclean_leader_election_enable": line.unclean_leader_election_enable,
        }
        self._started.append({**self._common(line.t, Kind.BROKER_STARTED), **settings})

    def _common(self, time: int, kind: Kind) -> dict[str, Any]:
        return {
            "time": time,
            "process": self._process,
            "kind": kind.value,
            "seq": self._seq,
            "incarnation": self._incarnation,
            "node": self._node,
        }

    def _record(self, time: int, kind: Kind, key: _Key, replica: _Replica, **columns: Any) -> None:
        topic, partition = key
        replica.events.append(
            {**self._common(time, kind), "topic": topic, "partition": partition, **columns}
        )

    def _replica(self, match: re.Match[str]) -> tuple[_Key, _Replica | None]:
        key = match["topic"], int(match["partition"])
        return key, self._replicas.get(key)

    # LogManager

    def opened(self, _time: int, match: re.Match[str]) -> None:
        """A log that was there when the broker started."""
        self._add(match, _Log(int(match["start"]), int(match["end"])), match["id"])

    def created(self, _time: int, match: re.Match[str]) -> None:
        """A new log, also one that a replica moves to."""
        self._add(match, _Log(), None)

    def _add(self, match: re.Match[str], log: _Log, topic_id: str | None) -> None:
        """Take in a log by the name of its directory: it may be that of a replica that moves, or of a deleted one."""
        directory, _, name = match["dir"].rpartition("/")
        key, replica = self._replica(match)
        is_future = name.endswith(FUTURE)
        if not is_future and name != f"{key[0]}-{key[1]}":
            return
        if replica is None:
            self._replicas[key] = _Replica(directory, {directory: log}, topic_id)
            return
        replica.logs[directory] = log
        if not is_future:
            replica.directory, replica.topic_id = directory, topic_id or replica.topic_id

    def deleted(self, time: int, match: re.Match[str]) -> None:
        """A log goes: that of the replica, or the second one of a move that was given up."""
        key, replica = self._replica(match)
        directory = match["dir"].rpartition("/")[0]
        if replica is not None and directory != replica.directory and directory in replica.logs:
            del replica.logs[directory]
        elif replica is not None:
            self._record(time, Kind.REPLICA_STOPPED, key, replica, step="delete")
            self._ended.append(self._replicas.pop(key))

    def moved(self, time: int, match: re.Match[str]) -> None:
        """The log in the other directory has taken the place of this one."""
        key, replica = self._replica(match)
        others = [] if replica is None else [d for d in replica.logs if d != replica.directory]
        if replica is None or not others:
            raise _NotUnderstood(f"the other log of {key[0]}-{key[1]} was never opened")
        del replica.logs[replica.directory]
        replica.directory = others[-1]
        self._record(
            time, Kind.LOG_DIR_CHANGED, key, replica, log_dir=replica.directory, **_bounds(replica)
        )

    # Partition

    def loaded(self, time: int, match: re.Match[str]) -> None:
        key, replica = self._replica(match)
        if replica is not None:
            replica.log.high_watermark = int(match["mark"])
            self._record(
                time, Kind.LOG_LOADED, key, replica, log_dir=replica.directory, **_bounds(replica)
            )

    def isr_updated(self, time: int, match: re.Match[str]) -> None:
        key, replica = self._replica(match)
        if replica is not None:
            replica.isr = _brokers(match["isr"])
            self._record(
                time,
                Kind.ISR_CHANGE_COMMITTED,
                key,
                replica,
                leader_epoch=replica.leader_epoch,
                partition_epoch=int(match["version"]),
                isr=replica.isr,
                maximal_isr=replica.isr,
            )

    # The logger of state changes

    def leads(self, time: int, match: re.Match[str]) -> None:
        key, replica = self._replica(match)
        if replica is None:
            raise _NotUnderstood(f"{key[0]}-{key[1]} has a leader whose log was never opened")
        replica.topic_id = match["id"] or replica.topic_id
        replica.role, replica.leader_epoch = LEADER, int(match["epoch"])
        replica.isr = _brokers(match["isr"])
        self._record(
            time,
            Kind.BECOME_LEADER,
            key,
            replica,
            leader_epoch=replica.leader_epoch,
            partition_epoch=int(match["version"]),
            isr=replica.isr,
            log_end_offset=int(match["end"]),
            high_watermark=int(match["mark"]),
            log_start_offset=replica.log.start,
        )

    def leads_already(self, _time: int, match: re.Match[str]) -> None:
        """The same leader epoch again, maybe with another ISR."""
        _, replica = self._replica(match)
        if replica is not None:
            replica.isr = _brokers(match["isr"])

    def follows(self, time: int, match: re.Match[str]) -> None:
        """The end of the log in this line is older than the line: its former fetcher may have appended meanwhile."""
        key, replica = self._replica(match)
        if replica is None:
            raise _NotUnderstood(f"{key[0]}-{key[1]} has a follower whose log was never opened")
        replica.role, replica.leader_epoch, replica.isr = FOLLOWER, int(match["epoch"]), []
        self._record(
            time,
            Kind.BECOME_FOLLOWER,
            key,
            replica,
            leader=int(match["leader"]),
            leader_epoch=replica.leader_epoch,
            partition_epoch=int(match["version"]),
            log_end_offset=replica.log.end,
            high_watermark=int(match["mark"]),
        )

    # Fetchers

    def fetches(self, _time: int, match: re.Match[str]) -> None:
        """Followers begin to fetch: the line has their topic ids."""
        for state in _FETCH_STATE.finditer(match.string):
            _, replica = self._replica(state)
            if replica is not None:
                replica.topic_id = state["id"]

    # UnifiedLog

    def appended(self, time: int, match: re.Match[str]) -> None:
        key, replica, log = self._log(match)
        if replica is None or log is None:
            return
        log.end = int(match["end"])
        if log is not replica.log:
            return
        is_leader = replica.role == LEADER
        self._record(
            time,
            Kind.APPEND,
            key,
            replica,
            role=replica.role,
            leader_epoch=replica.leader_epoch if is_leader else None,
            offset=int(match["first"]),
            last_offset=int(match["last"]),
            log_end_offset=log.end,
        )

    def marked(self, time: int, match: re.Match[str]) -> None:
        """The high watermark of a replica was set, to another value or to the same one."""
        key, replica, log = self._log(match)
        mark = int(match["mark"])
        if replica is None or log is None or log.high_watermark == mark:
            return
        log.high_watermark = mark
        if log is replica.log and replica.role == LEADER:
            self._record(
                time,
                Kind.HIGH_WATERMARK,
                key,
                replica,
                leader_epoch=replica.leader_epoch,
                high_watermark=mark,
                log_end_offset=log.end,
                isr=replica.isr,
                maximal_isr=replica.isr,
            )

    def truncated(self, time: int, match: re.Match[str]) -> None:
        """Records from an offset on are about to go."""
        self._cut(time, match, starts_anew=False)

    def truncated_fully(self, time: int, match: re.Match[str]) -> None:
        """All records are about to go, and the log begins again at an offset."""
        self._cut(time, match, starts_anew=True)

    def _cut(self, time: int, match: re.Match[str], *, starts_anew: bool) -> None:
        key, replica, log = self._log(match)
        if replica is None or log is None:
            return
        log.end = int(match["offset"])
        log.start = log.end if starts_anew else min(log.start, log.end)
        if log is replica.log:
            self._record(
                time,
                Kind.TRUNCATE,
                key,
                replica,
                offset=log.end,
                log_end_offset=log.end,
                leader_epoch=replica.leader_epoch,
                log_start_offset=log.start,
                high_watermark_before=log.high_watermark,
            )

    def start_raised(self, time: int, match: re.Match[str]) -> None:
        key, replica, log = self._log(match)
        if replica is None or log is None:
            return
        log.start = int(match["start"])
        if log is replica.log:
            self._record(
                time,
                Kind.LOG_START_OFFSET,
                key,
                replica,
                reason=match["reason"],
                **_bounds(replica),
            )

    def _log(self, match: re.Match[str]) -> tuple[_Key, _Replica | None, _Log | None]:
        """Return the replica and its log in the directory that the line names; None for what was never opened."""
        key, replica = self._replica(match)
        return key, replica, None if replica is None else replica.logs.get(match["dir"])


def _bounds(replica: _Replica) -> dict[str, int | None]:
    """Return what is known of the ends of the log; a high watermark that was never reported stays unset."""
    log = replica.log
    return {
        "log_start_offset": log.start,
        "log_end_offset": log.end,
        "high_watermark": log.high_watermark,
    }


def _brokers(text: str) -> list[int]:
    return sorted(int(broker) for broker in text.split(",") if broker)


_TP: Final = r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)"
_ID: Final = r"(?P<id>[A-Za-z0-9_-]{22})"
_UNIFIED_LOG: Final = rf"^\[UnifiedLog partition={_TP}, dir=(?P<dir>.*?)\] "
_PARTITION: Final = rf"^\[Partition {_TP} broker=\d+\] "
_ISR: Final = r"ISR \[(?P<isr>[\d,]*)\],"
_ROLE: Final = (
    r"leader epoch (?P<epoch>\d+) from offset (?P<end>\d+) with partition epoch (?P<version>\d+)"
)
_FETCH_STATE: Final = re.compile(rf"{_TP} -> InitialFetchState\(Some\({_ID}\),")
_ROLE_CHANGE: Final = re.compile(r"(?:^|\] )(?:Leader|Follower) \S+ .*starts at ")

_Handler = Callable[[_Reader, int, re.Match[str]], None]


def _patterns(handlers: Mapping[str, _Handler]) -> tuple[tuple[re.Pattern[str], _Handler], ...]:
    return tuple((re.compile(pattern), handler) for pattern, handler in handlers.items())


_OF_LOGS: Final = _patterns(
    {
        f"{_UNIFIED_LOG}Appended message set with last offset: (?P<last>\\d+), first offset: (?P<first>\\d+), "
        "next offset: (?P<end>\\d+),": _Reader.appended,
        f"{_UNIFIED_LOG}Setting high watermark \\(offset=(?P<mark>\\d+), ": _Reader.marked,
        f"{_UNIFIED_LOG}Truncating to offset (?P<offset>\\d+)$": _Reader.truncated,
        f"{_UNIFIED_LOG}Truncate and start at offset (?P<offset>\\d+), ": _Reader.truncated_fully,
        f"{_UNIFIED_LOG}Incremented log start offset to (?P<start>\\d+) due to (?P<reason>.*)$": (
            _Reader.start_raised
        ),
    }
)
_OF_LOG_MANAGER: Final = _patterns(
    {
        f"Completed load of Log\\(dir=(?P<dir>.*?)(?:, topicId={_ID})?, topic=(?P<topic>[^,]+), "
        "partition=(?P<partition>\\d+), .*logStartOffset=(?P<start>\\d+), logEndOffset=(?P<end>\\d+)\\)": (
            _Reader.opened
        ),
        f"Created log for partition {_TP} in (?P<dir>.*) with properties ": _Reader.created,
        f"Log for partition {_TP} is renamed to (?P<dir>.*) and is scheduled for deletion$": _Reader.deleted,
        f"The current replica is successfully replaced with the future replica for {_TP}$": (
            _Reader.moved
        ),
    }
)
_OF_PARTITIONS: Final = _patterns(
    {
        f"{_PARTITION}Log loaded for partition \\S+ with initial high watermark (?P<mark>\\d+)$": (
            _Reader.loaded
        ),
        f"{_PARTITION}ISR updated to (?P<isr>[\\d,]*) .*and version updated to (?P<version>\\d+)$": (
            _Reader.isr_updated
        ),
    }
)
_OF_STATE_CHANGES: Final = _patterns(
    {
        f"Leader {_TP} with topic id (?:Some\\({_ID}\\)|None) starts at {_ROLE}, "
        f"high watermark (?P<mark>\\d+), {_ISR}": _Reader.leads,
        f"Skipped the become-leader state change for {_TP} with topic id .* it is already the leader .*, {_ISR}": (
            _Reader.leads_already
        ),
        f"Follower {_TP} starts at {_ROLE} and high watermark (?P<mark>\\d+)\\. "
        "Current leader is (?P<leader>-?\\d+)\\.": _Reader.follows,
    }
)
_OF_FETCHERS: Final = _patterns({"Added fetcher to broker \\d+ for partitions ": _Reader.fetches})
_HANDLERS: Final = {
    **dict.fromkeys(LOGS, _OF_LOGS),
    LOG_MANAGER: _OF_LOG_MANAGER,
    PARTITIONS: _OF_PARTITIONS,
    STATE_CHANGES: _OF_STATE_CHANGES,
    FETCHERS: _OF_FETCHERS,
}
"""By logger: what its lines may say, and what takes it in."""
LOGGERS: Final = tuple(_HANDLERS)
"""The loggers whose lines are read."""
