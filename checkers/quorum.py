"""What Raft promises of a KRaft quorum, as far as its leaders describe it (``quorum-sample``) and its log shows it.

* **one-quorum-leader**: in each epoch of the quorum one voter is the leader: all that describe the quorum as their own
  in that epoch, and the leader whose first record of that epoch is committed, are the same.
  Smallest break: voters 1 and 2 both answer that they lead in epoch 3.
* **quorum-commits-stay**: no committed record of the metadata is lost:
  (a) in one epoch the high watermark of the leader never falls, and in a later epoch it is never below one of an
  earlier epoch, and
  (b) no leader of a later epoch has its first record below the high watermark of an earlier one.
  Smallest break: voter 1 answers the high watermark 10 in epoch 3; the leader of epoch 4 has its first record at 8.

Why (a) holds across epochs, in any sequence of the answers: a leader has a high watermark only when its own first
record is committed, and that record is behind all that was committed before. A deposed leader that does not know it
cannot commit what its successor does not have. Within an epoch the harness asks the one leader, one request after the
other.

What a correct quorum does and is not convicted for: a voter that was deposed still describes the quorum as its own, in
its own epoch, until it learns of the next one. Power cuts excuse nothing: voters sync their logs before they answer.

Limits: what happens between two samples is not seen, nor in an epoch whose leader was never asked. Records that are
lost without a new leader in their place show only in (a).
Source: Raft (Ongaro, Ousterhout 2014), election safety and leader completeness; KIP-595; KRaft's ``LeaderState``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from nemesis.checkers.breaks import quorum as breaks
from nemesis.checkers.explain import quorum as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

CONTROLLER: Final = "/controller"
EPOCH: Final = "/controller_epoch"


class Lead(NamedTuple):
    """A voter leads in an epoch: it says so, or the first record of the epoch does."""

    row: int
    epoch: int
    node: int
    first_offset: int | None = None
    """Of the epoch, where the log says it."""
    high_watermark: int | None = None
    """Where the voter says it."""


class Quorum(EventListCheck):
    kinds = frozenset({Kind.QUORUM_SAMPLE, Kind.ZNODE})
    columns = (
        *("node", "controller_epoch", "high_watermark"),
        *("path", "zk_op", "zxid", "controller_id"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ONE_QUORUM_LEADER, QUORUM_COMMITS_STAY)

    def judge(self, rows: list[Row]) -> Results:
        samples, starts = list(_samples(rows)), list(_starts(rows))
        second = _second_leaders([*samples, *starts])
        lost = [*_fallen(samples), *_replaced(samples, starts)]
        return (
            conclude(ONE_QUORUM_LEADER, checked=len(samples), findings=second),
            conclude(QUORUM_COMMITS_STAY, checked=len(samples), findings=lost),
        )


def _samples(rows: Iterable[Row]) -> Iterator[Lead]:
    """Yield what voters answered, in the order of the answers."""
    asked = [item for item in rows if item[1].kind == Kind.QUORUM_SAMPLE]
    for row, event in sorted(asked, key=lambda item: (item[1].time, item[1].seq)):
        if event.node is not None and event.controller_epoch is not None:
            yield Lead(row, event.controller_epoch, event.node, None, event.high_watermark)


def _starts(rows: Iterable[Row]) -> Iterator[Lead]:
    """Yield the leaders whose first records are committed."""
    leaders: dict[int | None, tuple[int, Event]] = {}
    epochs: dict[int | None, int] = {}
    for row, event in rows:
        if event.path == CONTROLLER and event.controller_id is not None:
            leaders[event.zxid] = row, event
        elif event.path == EPOCH and event.controller_epoch is not None:
            epochs[event.zxid] = event.controller_epoch
    for offset, (row, event) in leaders.items():
        if offset in epochs and event.controller_id is not None:
            yield Lead(row, epochs[offset], event.controller_id, first_offset=offset)


def _second_leaders(leads: Sequence[Lead]) -> Iterator[Finding]:
    """Yield the first contradiction of each epoch."""
    first: dict[int, Lead] = {}
    convicted: set[int] = set()
    for lead in leads:
        known = first.setdefault(lead.epoch, lead)
        if known.node != lead.node and lead.epoch not in convicted:
            convicted.add(lead.epoch)
            yield finding(
                ONE_QUORUM_LEADER.name,
                f"epoch {lead.epoch}",
                f"Voters {known.node} and {lead.node} both led the quorum in epoch {lead.epoch}.",
                known.row,
                lead.row,
            )


def _fallen(samples: Sequence[Lead]) -> Iterator[Finding]:
    """Yield, for each epoch, the first high watermark below one of the same epoch before, or of an earlier epoch."""
    highest: Lead | None = None
    by_epoch = sorted(samples, key=lambda sample: sample.epoch)
    convicted: set[int] = set()
    for sample in by_epoch:
        if sample.high_watermark is None:
            continue
        if highest is not None and sample.high_watermark < (highest.high_watermark or 0):
            if sample.epoch not in convicted:
                convicted.add(sample.epoch)
                yield _lost(highest, sample, f"answered {sample.high_watermark}")
        else:
            highest = sample


def _replaced(samples: Sequence[Lead], starts: Sequence[Lead]) -> Iterator[Finding]:
    """Yield the leaders whose first record replaces a committed one."""
    for start in starts:
        earlier = [
            sample
            for sample in samples
            if sample.epoch < start.epoch and sample.high_watermark is not None
        ]
        highest = max(earlier, key=lambda sample: sample.high_watermark or 0, default=None)
        offset = start.first_offset or 0
        if highest is not None and offset < (highest.high_watermark or 0):
            yield _lost(highest, start, f"has its first record at offset {offset}")


def _lost(highest: Lead, later: Lead, said: str) -> Finding:
    return finding(
        QUORUM_COMMITS_STAY.name,
        f"epoch {later.epoch}",
        f"Voter {highest.node} answered the high watermark {highest.high_watermark} in epoch {highest.epoch}; voter "
        f"{later.node}, the leader of epoch {later.epoch}, {said}.",
        highest.row,
        later.row,
    )


_DECIDED_FROM: Final = frozenset({EventSource.QUORUM_SAMPLES, EventSource.METADATA_LOG})
_UNKNOWN: Final = "No voter described the quorum as its own."

ONE_QUORUM_LEADER: Final = Property(
    name="one-quorum-leader",
    promise="In each epoch of a KRaft quorum one voter is the leader.",
    unit="answers of leaders of the quorum",
    unknown=_UNKNOWN,
    source="Raft, election safety; KIP-595.",
    check=Quorum,
    decided_from=_DECIDED_FROM,
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    is_of_quorum=True,
    reason=explain.one_quorum_leader,
    breaks=breaks.ONE_QUORUM_LEADER,
)
QUORUM_COMMITS_STAY: Final = Property(
    name="quorum-commits-stay",
    promise="A record of the metadata that a KRaft quorum has committed is never lost.",
    unit="answers of leaders of the quorum",
    unknown=_UNKNOWN,
    source="Raft, leader completeness; KIP-595.",
    check=Quorum,
    decided_from=_DECIDED_FROM,
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    is_of_quorum=True,
    reason=explain.quorum_commits_stay,
    breaks=breaks.QUORUM_COMMITS_STAY,
)
