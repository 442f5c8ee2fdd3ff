"""Transactions over time: those of each producer with their outcomes, and what held the last stable offset.

All of it comes from what clients recorded, so that it is the same for every target. ``templates/transactions.html``
draws it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import median
from typing import Final

from nemesis.checkers.framework.segment import ALWAYS, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History
from nemesis.reports.liveness import lasted
from nemesis.reports.run_axis import Bar, Lane, RunAxis, axis_ticks, fault_bars, lane_of
from nemesis.reports.series import RunSeries

COMMIT, ABORT, POLL = "commit-transaction", "abort-transaction", "poll"
HOLDER: Final = "open-transaction"
MAX_IDS: Final = 20
"""Transactional ids with the most transactions are drawn."""
MAX_PARTITIONS: Final = 40
"""Those whose last stable offset was held longest are drawn."""
_COLUMNS: Final = (
    *("f", "topic", "partition", "transactional_id", "transaction"),
    *("producer_id", "producer_epoch", "last_stable_offset", "high_watermark", "first_offset"),
)
_KINDS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO, Kind.TRANSACTION_BEGUN)


class Outcome(IntEnum):
    """How a transaction ended, as its producer knows; the number is its shade."""

    COMMITTED = 0
    ABORTED = 1
    IN_DOUBT = 2
    LEFT = 3


OUTCOMES: Final = ("committed", "aborted", "in doubt", "left")
"""By the number of the outcome. A producer that was killed or fenced leaves its transaction to the coordinator."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What its producer recorded of a transaction."""

    begun: Event
    end: Event
    """The completion of its end, or of the last operation of a transaction that was left."""

    @property
    def outcome(self) -> Outcome:
        if self.end.f not in (COMMIT, ABORT) or self.end.kind == Kind.FAIL:
            return Outcome.LEFT
        if self.end.kind != Kind.OK:
            return Outcome.IN_DOUBT
        return Outcome.COMMITTED if self.end.f == COMMIT else Outcome.ABORTED

    def bar(self, axis: RunAxis) -> Bar:
        begun, outcome = self.begun, self.outcome
        label = (
            f"transaction {begun.transaction}, {OUTCOMES[outcome]}; producer id {begun.producer_id}, "
            f"epoch {begun.producer_epoch}"
        )
        return axis.bar(begun.time, self.end.time, label, outcome)


@dataclass(frozen=True, slots=True)
class IdPanel:
    """What is drawn of one transactional id: a lane for each of its producers."""

    name: str
    summary: str
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class TransactionsPanel:
    ids: tuple[IdPanel, ...]
    held: tuple[Lane, ...]
    """By partition, when its last stable offset was below its high watermark."""
    bands: tuple[Bar, ...]
    """Faults, behind every lane."""
    ticks: tuple[tuple[float, str], ...]
    outcomes: tuple[str, ...]
    ids_left_out: int
    partitions_left_out: int


def transactions_panel(history: History, run: RunSeries) -> TransactionsPanel | None:
    """Return what the report shows of transactions; None of a run without them. Raises HistoryError."""
    groups = (Segment.of(group, ALWAYS) for group in history.row_groups)
    if not any(len(group.only((Kind.TRANSACTION_BEGUN,))) for group in groups):
        return None
    rows = Segment.starting_at(history.table((*ALWAYS, *_COLUMNS)), 0).only(_KINDS)
    events = sorted((event for _, event in rows.events()), key=lambda event: event.time)
    by_id = _by_id(events)
    if not by_id:
        return None
    axis = RunAxis(run.origin_ns, run.duration_s)
    busiest = sorted(by_id, key=lambda name: -len(by_id[name]))[:MAX_IDS]
    held = _held(events)
    longest = sorted(held, key=lambda name: -_held_ns(held[name]))[:MAX_PARTITIONS]
    return TransactionsPanel(
        tuple(_id_panel(name, by_id[name], axis) for name in sorted(busiest)),
        tuple(lane_of(name, (stay.bar(axis) for stay in held[name])) for name in sorted(longest)),
        fault_bars(run, axis),
        axis_ticks(run.duration_s),
        OUTCOMES,
        len(by_id) - len(busiest),
        len(held) - len(longest),
    )


def _by_id(events: Sequence[Event]) -> dict[str, list[Transaction]]:
    """By transactional id its transactions, in the order in which they began."""
    begun: dict[int, Event] = {}
    last: dict[int, Event] = {}
    for event in events:
        if event.transaction is None:
            continue
        if event.kind == Kind.TRANSACTION_BEGUN:
            begun[event.transaction] = event
        last[event.transaction] = event
    by_id: defaultdict[str, list[Transaction]] = defaultdict(list)
    for number, event in begun.items():
        by_id[event.transactional_id or "?"].append(Transaction(event, last[number]))
    return dict(by_id)


def _id_panel(name: str, transactions: Sequence[Transaction], axis: RunAxis) -> IdPanel:
    by_process: defaultdict[str, list[Transaction]] = defaultdict(list)
    for transaction in transactions:
        by_process[transaction.begun.process].append(transaction)
    lanes = tuple(
        lane_of(process, (transaction.bar(axis) for transaction in by_process[process]))
        for process in sorted(by_process)
    )
    return IdPanel(name, _summary(transactions), lanes)


def _summary(transactions: Sequence[Transaction]) -> str:
    counts = Counter(transaction.outcome for transaction in transactions)
    parts = [f"{counts[outcome]:,} {OUTCOMES[outcome]}" for outcome in Outcome if counts[outcome]]
    took_ms = [
        (transaction.end.time - transaction.begun.time) / 1e6
        for transaction in transactions
        if transaction.outcome is Outcome.COMMITTED
    ]
    if took_ms:
        parts.append(f"a commit took {lasted(median(took_ms))} in the median")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class _Stay:
    """The last stable offset of a partition stayed below its high watermark."""

    start_ns: int
    stop_ns: int
    offset: int
    high_watermark: int
    holder: str = ""
    """Which transaction held it, if the run has asked for that at its end."""

    def bar(self, axis: RunAxis) -> Bar:
        label = (
            f"last stable offset {self.offset}, high watermark {self.high_watermark}{self.holder}"
        )
        return axis.bar(self.start_ns, self.stop_ns, label)


def _held(events: Sequence[Event]) -> dict[str, list[_Stay]]:
    """By partition. Replicas lag, so of both offsets the highest that any answer has stated so far counts."""
    answers: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind == Kind.OK and event.f == POLL and event.last_stable_offset is not None:
            answers[f"{event.topic}-{event.partition}"].append(event)
    holders = _holders(events)
    stays = {
        name: [
            replace(stay, holder=holders.get((name, stay.offset), "")) for stay in _stays(of_one)
        ]
        for name, of_one in answers.items()
    }
    return {name: of_one for name, of_one in stays.items() if of_one}


def _holders(events: Iterable[Event]) -> dict[tuple[str, int], str]:
    """By partition and first offset the open transaction that a leader named at the end."""
    return {
        (f"{event.topic}-{event.partition}", event.first_offset): (
            f", held by producer id {event.producer_id}, epoch {event.producer_epoch}"
        )
        for event in events
        if event.kind == Kind.OK and event.f == HOLDER and event.first_offset is not None
    }


def _stays(answers: Sequence[Event]) -> Iterator[_Stay]:
    stable = high = -1
    since = 0
    for answer in answers:
        moved = max(stable, answer.last_stable_offset or 0)
        if 0 <= stable < high and moved > stable:
            yield _Stay(since, answer.time, stable, high)
        if moved > stable or stable >= high:
            since = answer.time
        stable, high = moved, max(high, answer.high_watermark or 0)
    if answers and stable < high:
        yield _Stay(since, answers[-1].time, stable, high)


def _held_ns(stays: Iterable[_Stay]) -> int:
    return sum(stay.stop_ns - stay.start_ns for stay in stays)
