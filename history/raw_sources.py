"""The raw files of a run: JSON lines of each process, logs of Kafka brokers, those of ZooKeeper or of a KRaft quorum.

A broker without a file is a problem of the history, and so is a run without the logs of metadata, if the run's target
has that source: the verdict is then ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.history.quorum_files import SEGMENTS
from nemesis.history.run_directory import RunDirectory
from nemesis.history.sources import EventSource
from nemesis.history.znodes import PROCESS

BROKER_FILES: Final = "broker-*.jsonl"


@dataclass(frozen=True, slots=True)
class RawSources:
    """The raw files that one run has."""

    run: RunDirectory
    lines: tuple[Path, ...]
    """Files of JSON lines, one per process."""
    members: tuple[Path, ...]
    """Directories of the transaction logs of ZooKeeper's members."""
    voters: tuple[Path, ...] = ()
    """Directories of the metadata logs of a KRaft quorum's voters."""
    broker_logs: tuple[Path, ...] = ()
    """Files of what Kafka brokers log, one per broker, where a reference broker has its trace."""
    tables: tuple[Path, ...] = ()
    """Arrow files of events: external histories that compiled code has read."""

    @classmethod
    def of(cls, run: RunDirectory) -> RawSources:
        """Return the raw files that are there now."""
        files = sorted(run.raw.glob("*.jsonl"))
        logs = [file for file in files if file.match(BROKER_FILES) and _has_logs(run)]
        return cls(
            run,
            tuple(file for file in files if file not in logs),
            tuple(sorted(run.zookeeper.glob("*/version-2"))),
            tuple(sorted(run.quorum.glob("*"))),
            tuple(logs),
            tuple(sorted(run.raw.glob("*.arrow"))),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to ingest."""
        return not (self.files or self.members or self.voters)

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of events, in each form."""
        return (*self.lines, *self.broker_logs, *self.tables)

    @property
    def size_bytes(self) -> int:
        """How many bytes there are to parse."""
        logs = [log for member in self.members for log in member.glob("log.*")]
        logs += [log for voter in self.voters for log in voter.glob(SEGMENTS)]
        return sum(path.stat().st_size for path in [*self.files, *logs])

    def missing(self) -> list[str]:
        """Return a sentence for each source that the run should have and has not.

        Which sources that are, the run states; the importer of a foreign history has listed its problems.
        """
        info = self.run.read_info()
        if info.foreign:
            return list(info.foreign["problems"])
        problems: list[str] = []
        present = {path.stem for path in [*self.lines, *self.broker_logs]}
        if not {EventSource.TRACES, EventSource.BROKER_LOGS}.isdisjoint(info.observes):
            problems += [
                f"{self.run.raw_file(process)} is missing: nothing is known of what {process} did"
                for process in (f"broker-{number}" for number in range(1, info.brokers + 1))
                if process not in present
            ]
        # A simulated ZooKeeper records its changes itself, as any process does.
        has_log = PROCESS in present or len(self.members) > info.zookeepers // 2
        if EventSource.METADATA_LOG in info.observes and not has_log:
            problems.append(
                f"{self.run.zookeeper} lacks the transaction logs of a majority of the servers"
            )
        if EventSource.QUORUM_LOG in info.observes and not self.voters:
            problems.append(f"{self.run.quorum} lacks the metadata logs of the quorum")
        return problems


def _has_logs(run: RunDirectory) -> bool:
    return EventSource.BROKER_LOGS in run.read_info().observes


def no_events(run: RunDirectory) -> str:
    """Return the sentence about a run without raw files."""
    return f"{run.raw} holds no events: nothing was recorded"
