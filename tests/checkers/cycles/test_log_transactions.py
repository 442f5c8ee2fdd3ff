"""Transactions over logs: one tiny history for each circle, and all orders of random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random

import networkx as nx
import pytest

from nemesis.checkers.breaks.log_operations import Polled, Sent, Txn, transactions
from nemesis.checkers.breaks.logs import (
    EACH_OTHER,
    INTERLEAVED,
    LATER_SEND,
    OWN_RECORD,
    POLLED_BEFORE_SENT,
)
from nemesis.checkers.cycles.log_transactions import NAMES, PRECOMMITTED, LogTransactions
from nemesis.checkers.cycles.models import MODELS
from nemesis.checkers.framework.model import Result
from tests.checkers.histories import judge


def results(*txns: Txn, model: str = "serializable", cuts: Sequence[int] = ()) -> dict[str, Result]:
    return judge(LogTransactions(MODELS[model]), transactions(*txns), cuts)


def sentences(*txns: Txn, model: str = "serializable") -> dict[str, str]:
    """By property, the verdict of its findings."""
    return {
        name: str(result.findings[0].verdict)
        for name, result in results(*txns, model=model).items()
        if result.findings
    }


def test_two_transactions_that_polled_each_others_records() -> None:
    (finding,) = results(*EACH_OTHER)["G1c"].findings
    assert finding.sentence == (
        "T0 and T2 have no order: each comes before the next, and the last before the first, by who polled what they "
        "sent."
    )
    assert finding.steps == (
        "T0 comes before T2: T2 polled 1 of key x (offset 0), which T0 sent.",
        "T2 comes before T0: T0 polled 2 of key y (offset 0), which T2 sent.",
        "So T0 would have come before itself.",
    )
    assert finding.key == "key x, key y"
    assert {event["op"] for event in finding.events} == {0, 1, 2, 3}
    assert sentences(*EACH_OTHER) == {"G1c": "invalid"}


def test_who_reads_uncommitted_may_do_that() -> None:
    assert sentences(*EACH_OTHER, model="read-uncommitted") == {"G1c": "valid"}
    (finding,) = results(*EACH_OTHER, model="read-uncommitted")["G1c"].findings
    assert finding.sentence.endswith("The model read-uncommitted allows that.")


def test_a_process_that_polled_what_was_sent_because_of_its_later_send() -> None:
    assert sentences(*LATER_SEND) == {"G1c-process": "invalid"}


def test_what_was_polled_before_it_was_sent() -> None:
    assert sentences(*POLLED_BEFORE_SENT) == {"G1c-realtime": "invalid"}
    (finding,) = results(*POLLED_BEFORE_SENT)["G1c-realtime"].findings
    assert "T0 comes before T1: T0 had ended before T1 began." in finding.steps


def test_appends_of_transactions_may_interleave() -> None:
    assert sentences(*INTERLEAVED) == {"G0": "valid"}
    assert {str(result.verdict) for result in results(*INTERLEAVED).values()} == {
        "valid",
        "unknown",
    }
    (finding,) = results(*INTERLEAVED)["G0"].findings
    assert finding.steps[0] == (
        "T0 comes before T2: in key x, 1 of T0 is at offset 0, and 2 of T2 behind it, at 1."
    )


def test_appends_and_polls_may_make_a_circle() -> None:
    calls = (
        Txn(0, 10, [Sent("x", 1, 0), Polled("y", [(0, 3)])], "0"),
        Txn(1, 11, [Sent("x", 2, 1), Sent("y", 3, 0)], "1"),
    )
    assert sentences(*calls) == {"G1c": "valid"}


def test_a_transaction_that_polled_its_own_record() -> None:
    (finding,) = results(*OWN_RECORD)["precommitted-read"].findings
    assert finding.sentence == "T0 polled 1 of key x (offset 0), which it sent itself."
    assert {event["op"] for event in finding.events} == {0, 1}
    assert sentences(*OWN_RECORD) == {"precommitted-read": "invalid"}
    assert sentences(*OWN_RECORD, model="read-uncommitted") == {"precommitted-read": "valid"}


def test_of_what_failed_or_is_in_doubt_nothing_follows() -> None:
    for kind in ("fail", "info"):
        first, second = EACH_OTHER
        assert sentences(first, Txn(1, 11, second.parts, "1", kind)) == {}


def test_a_transaction_in_doubt_has_committed_if_its_record_was_polled() -> None:
    sent, polled = Txn(20, 30, [Sent("x", 1, 0)], "1", "info"), POLLED_BEFORE_SENT[0]
    assert sentences(polled, sent) == {"G1c-realtime": "invalid"}
    assert sentences(polled, Txn(20, 30, [Sent("x", 2, 0)], "1", "info")) == {}


def test_it_is_unknown_when_a_transaction_in_doubt_ended() -> None:
    sent = Txn(0, 10, [Sent("x", 1, 0)], "0", "info")
    later = Txn(20, 30, [Sent("y", 2, 0)], "0")
    both = Txn(1, 31, [Polled("y", [(0, 2)]), Polled("x", [(0, 1)])], "1")
    assert sentences(sent, later, both) == {}


def test_a_value_that_was_sent_twice_shows_no_order() -> None:
    again = Txn(2, 12, [Sent("x", 1, 1)], "2")
    assert "G1c" not in sentences(*EACH_OTHER, again)


def test_nobody_who_polled_proves_nothing() -> None:
    verdicts = {
        name: str(result.verdict) for name, result in results(Txn(0, 1, [Sent("x", 1, 0)])).items()
    }
    assert verdicts == {**dict.fromkeys([*NAMES, PRECOMMITTED], "unknown"), "G0": "valid"}


def random_history(rng: Random) -> list[Txn]:
    """Logs that are filled as chance has it; polls that return some of their records, some of them too early."""
    logs: dict[str, list[int]] = {"x": [], "y": []}
    values = count(1)
    planned = []
    for number in range(rng.randint(2, 6)):
        parts: list[tuple[str, int | None]] = []
        for _ in range(rng.randint(1, 3)):
            log = rng.choice("xy")
            value = next(values) if rng.random() < 0.5 else None
            parts.append((log, value))
        began = (number * 3 + 10 - rng.randint(0, 8)) * 100 + number
        ended = (number * 3 + 10 + rng.randint(0, 8)) * 100 + 50 + number
        planned.append((began, ended, parts))
    sends = [(log, value) for _, _, parts in planned for log, value in parts if value is not None]
    if rng.random() < 0.4:
        rng.shuffle(sends)
    for log, value in sends:
        logs[log].append(value)
    txns = []
    busy: dict[int, int] = {}
    for began, ended, parts in planned:
        process = next(item for item in count() if busy.get(item, 0) < began)
        busy[process] = ended
        said: list[Sent | Polled] = []
        for log, value in parts:
            if value is None:
                records = [item for item in enumerate(logs[log]) if rng.random() < 0.4]
                said.append(Polled(log, records))
            else:
                said.append(Sent(log, value, logs[log].index(value)))
        txns.append(Txn(began, ended, said, str(process)))
    return txns


def polled(txn: Txn, other: Txn) -> bool:
    """Whether the other transaction polled what this one sent."""
    sent = {(part.log, part.value) for part in txn.parts if isinstance(part, Sent)}
    read = {
        (part.log, value)
        for part in other.parts
        if isinstance(part, Polled)
        for _, value in part.records
    }
    return bool(sent & read)


def by_hand(txns: Sequence[Txn]) -> set[str]:
    """Which circles there are, by looking at every pair of transactions."""

    def circular(*kinds: str) -> bool:
        graph: nx.DiGraph[int] = nx.DiGraph()
        for a, txn in enumerate(txns):
            for b, other in enumerate(txns):
                if a != b and any(relations[kind](txn, other) for kind in kinds):
                    graph.add_edge(a, b)
        return not nx.is_directed_acyclic_graph(graph)

    def appended(txn: Txn, other: Txn) -> bool:
        return any(
            a.log == b.log and a.offset < b.offset
            for a in txn.parts
            for b in other.parts
            if isinstance(a, Sent) and isinstance(b, Sent)
            if a.offset is not None and b.offset is not None
        )

    relations: dict[str, Callable[[Txn, Txn], bool]] = {
        "wr": polled,
        "ww": appended,
        "process": lambda item, other: item.process == other.process and item.ended <= other.began,
        "realtime": lambda item, other: item.ended < other.began,
    }
    collected = set()
    if circular("wr"):
        collected.add("polls")
    if circular("wr", "process", "realtime"):
        collected.add("time")
    if circular("ww", "wr"):
        collected.add("appends")
    return collected


def agree(seeds: range) -> dict[str, int]:
    met = dict.fromkeys(["polls", "time", "appends", "nothing"], 0)
    for seed in seeds:
        rng = Random(seed)
        txns = random_history(rng)
        said = results(*txns, cuts=[rng.randint(0, 20)])
        wrong = {name for name, value in said.items() if value.verdict == "invalid"}
        names = {name for name, value in said.items() if value.findings}
        assert (PRECOMMITTED in wrong) == any(polled(txn, txn) for txn in txns), (seed, txns)
        wrong.discard(PRECOMMITTED)
        expected = by_hand(txns)
        assert ("G1c" in wrong) == ("polls" in expected), (seed, txns)
        assert bool(wrong) == ("time" in expected), (seed, txns)
        assert bool({"G0", "G1c"} & names) == ("appends" in expected), (seed, txns)
        for name in expected or {"nothing"}:
            met[name] += 1
    return met


def test_looking_at_every_pair_agrees() -> None:
    assert min(agree(range(150)).values()) > 8


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(10_000, 20_000, 1_000))
def test_looking_at_every_pair_agrees_ten_thousand_times(start: int) -> None:
    assert min(agree(range(start, start + 1_000)).values()) > 50
