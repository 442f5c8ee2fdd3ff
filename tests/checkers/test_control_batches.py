"""Generated histories with control batches, judged by all checks: markers, committed, aborted and open ranges.

Two replicas of t-0 hold records of transactional producers and the markers between them. Clients know which transaction
was committed. All checks judge the history, in one piece and in several, and the client log with its fast path and its
walk. A history without its markers shows that the checks read them.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from nemesis.checkers import select
from nemesis.checkers.breaks.events import TP, append, become_leader, final, high_watermark, marker
from nemesis.checkers.breaks.transactions_read import committed_poll, request
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.log import ClientLog
from nemesis.history.events import Event
from tests.checkers.divided_partitions import PARTITIONED, WALKED, small_cells
from tests.checkers.histories import judge

LEADER, FOLLOWER = 1, 2
PRODUCERS = (7, 8, 9)
DECIDED = (
    *("lost-write", "unseen", "poll-skip", "duplicate", "dirty-read", "nonmonotonic-poll"),
    *("log-matching", "leader-completeness", "hw-bounded", "marker-epoch-grows", "torn-markers"),
    *("aborted-read", "read-beyond-lso", "torn-transaction", "fenced-producer"),
)
"""The properties that such a history decides."""


class History:
    """The steps of a correct cluster; at the end a final reader and a reader of committed records read all of it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.time = 2
        self.events: list[Event] = [become_leader(1, LEADER, 0, 0)]
        self.log: list[int | None] = []
        """The transaction of each record; None of a marker."""
        self.open: dict[int, tuple[int, int]] = {}
        """By producer, its open transaction and the first offset of it."""
        self.aborted: set[int] = set()
        self.begun = 0
        self.position = 0
        for _ in range(self.rng.randrange(30, 90)):
            self.rng.choice((self.write, self.write, self.end, self.read))(None)
        for producer in PRODUCERS:
            self.write(producer)
            self.end(producer, "commit")
        while self.position < len(self.log):
            self.read(None)
        records = {
            offset: 100 + offset for offset, owner in enumerate(self.log) if owner is not None
        }
        self.events += final(
            self.time + 1, records, mark=len(self.log), last_offset=len(self.log) - 1
        )

    def write(self, producer: int | None) -> None:
        """A producer sends a record in its transaction, which it may begin."""
        producer, offset = producer or self.rng.choice(PRODUCERS), len(self.log)
        if producer not in self.open:
            self.begun += 1
            self.open[producer] = self.begun, offset
        transaction = self.open[producer][0]
        self.log.append(transaction)
        about: dict[str, Any] = {"value": 100 + offset, "acks": -1, "sequence": offset, **TP}
        sent = request(self.time, "send", transaction, answer={"offset": offset}, **about)
        self.add(sent[0])
        self.replicate(offset)
        self.add(sent[1])
        self.identify(sent, producer)

    def end(self, producer: int | None, outcome: str | None = None) -> None:
        """A transaction is decided, its marker replicated, and its completion written."""
        producer = producer or self.rng.choice(PRODUCERS)
        if producer not in self.open:
            return
        transaction, first = self.open.pop(producer)
        outcome, offset = outcome or self.rng.choice(("commit", "abort")), len(self.log)
        if outcome == "abort":
            self.aborted |= {
                number for number, owner in enumerate(self.log) if owner == transaction
            }
        ended = request(self.time, f"{outcome}-transaction", transaction)
        self.identify(ended, producer)
        for event in ended:
            self.add(event)
        self.log.append(None)
        self.replicate(offset)
        about: dict[str, Any] = {"producer_id": producer, "outcome": outcome, "first": first}
        for node, role in ((LEADER, "leader"), (FOLLOWER, "follower")):
            self.add(marker(0, node, offset, role=role, **about))
        done: dict[str, Any] = {"producer_id": producer, "outcome": outcome, "producer_epoch": 0}
        key: dict[str, Any] = {
            "topic": TP["topic"],
            "partition": TP["partition"],
            "coordinator_epoch": 0,
        }
        kind = "transaction-completed"
        self.add(Event(time=0, process="broker-1", node=1, kind=kind, seq=0, **done, **key))

    def read(self, _producer: int | None) -> None:
        """A reader of committed records is given what is below the first open transaction."""
        stable = min([len(self.log), *(first for _, first in self.open.values())])
        stop = min(self.position + self.rng.randrange(1, 9), stable)
        if stop == self.position:
            return
        given = {
            offset: 100 + offset
            for offset in range(self.position, stop)
            if self.log[offset] is not None and offset not in self.aborted
        }
        for event in committed_poll(self.time, self.position, given, stop - 1):
            self.add(event)
        self.position = stop

    def replicate(self, offset: int) -> None:
        """A batch is in both logs, and below the high watermark."""
        self.add(append(0, LEADER, 0, offset, crc=offset, role="leader"))
        self.add(append(0, FOLLOWER, 0, offset, crc=offset))
        self.add(high_watermark(0, LEADER, 0, offset + 1, [LEADER, FOLLOWER]))

    def add(self, event: Event) -> None:
        self.time += 1
        event.time = event.seq = self.time
        self.events.append(event)

    @staticmethod
    def identify(events: list[Event], producer: int) -> None:
        """Each producer has a transactional id of its own."""
        for event in events:
            event.producer_id, event.transactional_id = producer, f"writes-{producer}"
            event.process = f"transactor-{producer}"


def judged(events: list[Event], cuts: list[int], large: int) -> dict[str, Result]:
    checks = select()
    for check in checks:
        if isinstance(check, ClientLog):
            check.large = large  # type: ignore[misc]
    return judge(checks, events, cuts)


def broken(results: dict[str, Result]) -> dict[str, list[str]]:
    return {
        name: [finding.sentence for finding in result.findings]
        for name, result in results.items()
        if result.verdict is Verdict.INVALID
    }


@pytest.mark.parametrize("seed", range(6))
def test_all_checks_judge_a_history_with_markers_on_both_paths(seed: int) -> None:
    history, rng = History(seed), Random(seed)
    walked = judged(history.events, [], WALKED)
    assert broken(walked) == {}
    assert [name for name in DECIDED if walked[name].verdict is not Verdict.VALID] == []
    cuts = [rng.randrange(1000) for _ in range(3)]
    with small_cells(1 + seed % 4) as slow:
        fast = judged(history.events, cuts, PARTITIONED)
    assert set(slow) == {(None, None)}, "only requests without a partition have no certificate"
    assert fast == walked


@pytest.mark.parametrize("seed", range(3))
def test_without_its_markers_the_same_history_is_broken(seed: int) -> None:
    events = [event for event in History(seed).events if event.kind != "marker-appended"]
    walked = judged(events, [], WALKED)
    with small_cells(2):
        assert judged(events, [7, 90], PARTITIONED) == walked
    assert {"poll-skip", "torn-markers"} <= set(broken(walked))


def test_a_record_of_an_aborted_transaction_that_is_read_is_found_beside_markers() -> None:
    history = History(1)
    offset = min(history.aborted)
    poll = next(
        event
        for event in history.events
        if event.kind == "ok" and event.f == "poll" and (event.last_offset or 0) >= offset
    )
    given = dict(zip(poll.offsets or (), poll.values or (), strict=True)) | {offset: 100 + offset}
    poll.offsets, poll.values = sorted(given), [given[number] for number in sorted(given)]
    assert "aborted-read" in broken(judged(history.events, [], WALKED))
