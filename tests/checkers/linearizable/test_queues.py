"""Queues: one tiny history for each anomaly, true histories, and a slow count of the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Finding, Result
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.linearizable.queues import FifoQueue, TotalQueue
from nemesis.history.events import Event
from tests.checkers.histories import judge, only
from tests.checkers.linearizable.objects import (
    Drawn,
    broken,
    findings_of,
    has_order,
    true_histories,
)

ANOMALIES = property_names(FifoQueue)
SEARCHED = "fits into no order"
"""In findings about whole queues, which ``test_queue_search`` compares with all orders."""


def enqueue(
    start: int, finish: int, value: int, outcome: str = "ok", key: int | None = None
) -> Call:
    return Call("enqueue", start, finish, outcome, value, key=key)


def dequeue(
    start: int, finish: int, value: int | None, outcome: str = "ok", key: int | None = None
) -> Call:
    return Call("dequeue", start, finish, outcome, value, key=key)


def drain(
    start: int, finish: int, *values: int, outcome: str = "ok", key: int | None = None
) -> Call:
    return Call("drain", start, finish, outcome, values=values, key=key)


def verdicts(*calls: Call) -> dict[str, str]:
    results = judge(FifoQueue(), events(*calls))
    return {
        name: str(result.verdict) for name, result in results.items() if result.verdict != "valid"
    }


def result(name: str, *calls: Call) -> Result:
    return only(FifoQueue(), events(*calls), name)


def broken_by(name: str, history: Sequence[Event]) -> Finding:
    """The one finding in one of the smallest histories that break a property."""
    (finding,) = only(FifoQueue(), history, name).findings
    return finding


def test_what_is_enqueued_is_dequeued() -> None:
    calls = (enqueue(1, 2, 5), enqueue(3, 4, 6), dequeue(5, 6, 5), drain(7, 8, 6))
    judged = result("queue-lost", *calls)
    assert (judged.verdict, judged.checked, judged.unit) == ("valid", 2, "acknowledged values")
    assert verdicts(*calls) == {}


def test_a_drain_returns_first_what_came_first() -> None:
    puts = (enqueue(1, 2, 1), enqueue(3, 4, 2), enqueue(3, 5, 3))
    assert verdicts(*puts, drain(6, 7, 1, 3, 2)) == {}
    (finding,) = result("queue-order", *puts, drain(6, 7, 2, 1, 3)).findings
    assert finding.sentence.startswith("2 was dequeued from the object before 1, which had been")
    assert "The same drain returned 1 behind 2." in finding.steps
    # Another drain, or an enqueue that overlaps, does not make it wrong.
    assert verdicts(*puts, drain(6, 9, 2), drain(6, 9, 1, 3)) == {}
    assert verdicts(enqueue(1, 4, 1), enqueue(3, 4, 2), drain(5, 6, 2, 1)) == {}
    assert verdicts(enqueue(1, 2, 1), enqueue(3, 9, 2, "info"), drain(5, 6, 2, 1)) == {
        "queue-order": "invalid"
    }


def test_a_drain_keeps_its_order_beside_dequeues_in_doubt() -> None:
    puts = (enqueue(1, 2, 1), enqueue(3, 4, 1), enqueue(5, 6, 2), dequeue(7, 8, None, "info"))
    assert verdicts(*puts, drain(10, 11, 1, 2)) == {}
    assert verdicts(*puts, drain(10, 11, 2, 1)) == {"queue-order": "invalid"}


def test_a_value_that_a_drain_does_not_find_is_lost() -> None:
    finding = broken_by("queue-lost", breaks.QUEUE_LOST[0])
    assert finding.sentence == (
        "5 is lost from key 7: it was enqueued, nobody dequeued it, and the queue was empty then."
    )
    assert finding.steps == (
        "enqueue 5 was over at 2 ns.",
        "The queue was found empty by an operation that was under way from 3 ns to 4 ns.",
        "No dequeue and no drain returned 5.",
    )
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4]


def test_a_dequeue_that_finds_nothing_is_as_good() -> None:
    assert verdicts(enqueue(1, 2, 5), dequeue(3, 4, None))["queue-lost"] == "invalid"


def test_a_copy_of_a_value_that_was_enqueued_twice_is_lost() -> None:
    two = (enqueue(1, 2, 5), enqueue(3, 4, 5), dequeue(5, 6, 5))
    (finding,) = only(TotalQueue(), events(*two, drain(7, 8)), "queue-lost").findings
    assert finding.verdict == "invalid"
    assert finding.sentence == (
        "5 is lost from the object: it was enqueued, it was dequeued less often, 1 times, and the queue was empty then."
    )
    assert broken(TotalQueue(), *two, drain(7, 8, 5)) == {}
    assert broken(TotalQueue(), two[0], *two[2:], drain(7, 8), enqueue(9, 10, 5)) == {}
    assert broken(TotalQueue(), *two, drain(7, 8), dequeue(9, 10, None, "info")) == {}


MAY_BE_THERE = (
    (enqueue(1, 2, 5),),
    (enqueue(1, 4, 5), drain(2, 3)),
    (enqueue(1, 2, 5), drain(3, 4, outcome="fail")),
    (enqueue(1, 2, 5, key=1), drain(3, 4, key=2)),
)


@pytest.mark.parametrize("calls", MAY_BE_THERE)
def test_what_was_enqueued_when_no_operation_saw_it_empty_may_be_there(calls: list[Call]) -> None:
    (finding,) = only(TotalQueue(), events(*calls), "queue-lost").findings
    assert finding.verdict == "unknown"
    key = "key 1" if calls[0].key else "the object"
    assert finding.sentence == (
        "1 value was enqueued and not dequeued, and may be in the queue or with dequeues of unknown outcome: the "
        f"first is 5 of {key}."
    )
    (finding,) = result("queue-lost", *calls).findings
    assert finding.verdict == "valid"
    is_observed = any(call.f != "enqueue" and call.outcome == "ok" for call in calls)
    assert set(verdicts(*calls).values()) == (set() if is_observed else {"unknown"})


def test_a_queue_without_a_dequeue_names_what_it_lacks() -> None:
    judged = result("queue-lost", enqueue(1, 2, 5))
    assert (judged.checked, judged.unit) == (0, "dequeues")
    assert verdicts(dequeue(1, 2, None)) == {}


def test_dequeues_in_doubt_may_have_taken_one_value_each() -> None:
    two = (enqueue(1, 2, 5), enqueue(1, 2, 6), drain(7, 8))
    both = (dequeue(3, 4, None, "info"), dequeue(3, 4, None, "none"))
    assert verdicts(*two, both[0])["queue-lost"] == "invalid"
    for in_doubt in (both, [drain(3, 4, outcome="info")]):
        assert only(TotalQueue(), events(*two, *in_doubt), "queue-lost").verdict == "unknown"
        assert verdicts(*two, *in_doubt) == {}


def test_what_is_in_a_queue_at_the_end_has_its_place_in_the_order() -> None:
    calls = (enqueue(1, 2, 1), enqueue(3, 4, 2))
    assert verdicts(*calls, dequeue(5, 6, 1)) == {}
    assert set(verdicts(*calls, dequeue(5, 6, 2))) == {"queue-order"}


def test_an_enqueue_in_doubt_may_be_there_or_not() -> None:
    assert "queue-lost" not in verdicts(enqueue(1, 2, 5, "info"), enqueue(1, 2, 6), drain(3, 4, 6))
    judged = result("queue-lost", enqueue(1, 2, 5, "info"), enqueue(1, 2, 6), drain(3, 4, 5, 6))
    assert (judged.verdict, judged.numbers) == ("valid", {"recovered_values": 1.0})


def test_a_value_that_nobody_enqueued() -> None:
    finding = broken_by("queue-unexpected", breaks.QUEUE_UNEXPECTED[0])
    assert finding.sentence == "6 was dequeued from the object, which nobody had enqueued."
    assert [event["time"] for event in finding.events] == [3, 4]


def test_a_value_whose_enqueue_failed() -> None:
    finding = broken_by("queue-unexpected", breaks.QUEUE_UNEXPECTED[1])
    assert finding.sentence == "5 was dequeued from the object, whose enqueue certainly failed."
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4]


def test_a_value_that_is_dequeued_before_it_is_enqueued() -> None:
    finding = broken_by("queue-unexpected", breaks.QUEUE_UNEXPECTED[2])
    assert finding.sentence == "5 was dequeued from the object, before its enqueue began."


def test_a_value_that_is_dequeued_twice() -> None:
    calls = (enqueue(1, 2, 5), dequeue(3, 4, 5), dequeue(5, 6, 5))
    finding = broken_by("queue-duplicate", breaks.QUEUE_DUPLICATE[0])
    assert finding.sentence == "5 was dequeued from the object 2 times, and enqueued 1 times."
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4, 5, 6]
    assert "queue-duplicate" not in verdicts(*calls, enqueue(2, 3, 5))


def test_duplicates_are_allowed_to_a_queue_without_order() -> None:
    judged = only(TotalQueue(), breaks.QUEUE_DUPLICATE[0], "queue-duplicate")
    assert (judged.verdict, judged.finding_count) == ("valid", 1)
    assert judged.findings[0].sentence.endswith(" A queue that delivers at least once may do that.")


def test_a_value_that_overtakes_another() -> None:
    finding = broken_by("queue-order", breaks.QUEUE_ORDER[1])
    assert finding.sentence == (
        "6 was dequeued from the object before 5, which had been enqueued before 6."
    )
    assert finding.steps == (
        "enqueue 5 was under way from 1 ns to 2 ns.",
        "enqueue 6 was under way from 3 ns to 4 ns: later.",
        "6 was dequeued by an operation under way from 5 ns to 6 ns.",
        "5 was dequeued by one under way from 7 ns to 8 ns: later.",
        "A queue gives first what came first.",
    )
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert "queue-order" not in judge(TotalQueue(), breaks.QUEUE_ORDER[1])


def test_who_is_still_there_is_overtaken_too() -> None:
    calls = (enqueue(1, 2, 5), enqueue(3, 4, 6), dequeue(5, 6, 6))
    finding = broken_by("queue-order", breaks.QUEUE_ORDER[0])
    assert finding.sentence == (
        "6 was dequeued from the object and not 5, which had been enqueued before 6."
    )
    assert finding.steps[3] == "Nobody dequeued 5."
    assert "queue-order" not in verdicts(*calls, dequeue(5, 6, None, "info"))
    assert "queue-order" not in verdicts(enqueue(1, 3, 5), *calls[1:])


def test_a_queue_that_is_found_empty_and_is_not() -> None:
    finding = broken_by("queue-empty", breaks.QUEUE_EMPTY[0])
    assert finding.sentence == "The object was found empty, and held 5 all the while."
    assert finding.steps == (
        "It was found empty by an operation that was under way from 3 ns to 4 ns.",
        "enqueue 5 was over at 2 ns, and nobody began to dequeue it before 5 ns.",
    )
    results = judge(FifoQueue(), breaks.QUEUE_EMPTY[0])
    assert [name for name, value in results.items() if value.findings] == ["queue-empty"]


def test_one_value_after_the_other_keeps_a_queue_from_being_empty() -> None:
    calls = (enqueue(1, 2, 5), enqueue(3, 4, 6), dequeue(6, 8, 5), dequeue(20, 21, 6))
    (finding,) = result("queue-empty", *calls, dequeue(3, 9, None)).findings
    assert finding.sentence == "The object was found empty, and held 5, 6 all the while."
    for harmless in (dequeue(1, 9, None), dequeue(3, 20, None), dequeue(22, 23, None)):
        assert verdicts(*calls, harmless) == {}
    late = enqueue(3, 6, 6)
    assert verdicts(calls[0], late, *calls[2:], dequeue(3, 9, None)) == {}


def after(held: Hashable, call: Call) -> list[Hashable]:
    """What may be in a queue after an operation that found this in it."""
    assert isinstance(held, tuple)
    if call.f == "enqueue":
        return [(*held, call.value)]
    return [held[1:]] if call.value == (held[0] if held else None) else []


def agree_on_all_orders(seeds: Iterable[int]) -> dict[str, int]:
    """Compare with all orders; return how often each anomaly was met, and none."""
    met = dict.fromkeys([*ANOMALIES, "nothing"], 0)
    for seed in seeds:
        rng = Random(seed)
        calls: list[Call] = []
        held: list[int] = []
        for number in range(rng.randint(4, 8)):
            start = 4 * number - rng.choice([0, 1, 1, 6])
            finish = 4 * number + rng.choice([0, 1, 1, 6])
            if rng.random() < 0.5:
                outcome = rng.choice(["ok", "ok", "ok", "ok", "ok", "ok", "fail", "info"])
                calls.append(enqueue(start, finish, number, outcome))
                held += [] if outcome == "fail" else [number]
            else:
                position = rng.choice([0, 0, 0, 1])
                is_shy = rng.random() < 0.2
                value = held.pop(position) if len(held) > position and not is_shy else None
                calls.append(dequeue(start, finish, value))
        wrong = [name for name, verdict in verdicts(*calls).items() if verdict == "invalid"]
        assert bool(wrong) != has_order(calls, (), after), (seed, wrong, calls)
        for name in wrong or ["nothing"]:
            met[name] += 1
    return met


def test_all_orders_agree() -> None:
    met = agree_on_all_orders(range(400))
    assert min(met[name] for name in ("queue-lost", "queue-order", "queue-empty", "nothing")) > 8


@pytest.mark.nightly
def test_all_orders_agree_ten_thousand_times() -> None:
    assert agree_on_all_orders(range(10_000, 20_000))["queue-empty"] > 200


def test_what_overlaps_overtakes_nobody() -> None:
    assert verdicts(enqueue(1, 3, 5), enqueue(3, 4, 6), dequeue(5, 6, 6), dequeue(7, 8, 5)) == {}
    assert verdicts(enqueue(1, 2, 5), enqueue(3, 4, 6), dequeue(5, 7, 6), dequeue(7, 8, 5)) == {}


def counted(calls: list[Call]) -> dict[str, int]:
    """The same by looking at every value, every pair of values."""
    collected = dict.fromkeys(ANOMALIES, 0)
    keys = {call.key for call in calls}
    for key in keys:
        own = [call for call in calls if call.key == key]
        taken: dict[int, list[Call]] = {}
        for call in own:
            values = call.values if call.f == "drain" else (call.value,)
            if call.f != "enqueue" and call.outcome == "ok":
                for value in values or ():
                    if value is not None:
                        taken.setdefault(value, []).append(call)
        puts = [call for call in own if call.f == "enqueue"]
        tried: dict[int | None, list[Call]] = {}
        for call in puts:
            tried.setdefault(call.value, []).extend([call] if call.outcome != "fail" else [])
        doubtful = [call for call in own if call.outcome in ("info", "none")]
        excuse = sum(call.f == "dequeue" for call in doubtful)
        excuse += 1000 * sum(call.f == "drain" for call in doubtful)
        empties = [
            call.start
            for call in own
            if call.outcome == "ok"
            and (call.f == "drain" or (call.f == "dequeue" and call.value is None))
        ]
        acknowledged = {call.value or 0 for call in puts if call.outcome == "ok"}
        over = {
            value: min(put.finish or 0 for put in puts if (put.value, put.outcome) == (value, "ok"))
            for value in acknowledged
        }
        gone = [
            value
            for value in acknowledged
            if value not in taken and any(empty > over[value] for empty in empties)
        ]
        collected["queue-lost"] += len(gone) if len(gone) > excuse else 0
        for value, by in taken.items():
            starts = [call.start for call in tried.get(value, [])]
            if not starts or min(item.finish or 0 for item in by) < min(starts):
                collected["queue-unexpected"] += 1
            if starts and len(by) > len(starts):
                collected["queue-duplicate"] += 1
        once = [v for v, by in taken.items() if len(by) == 1 and len(tried.get(v, [])) == 1]
        alone = [v for v in over if len(tried[v]) == 1 and v not in taken and v not in gone]
        there = [] if excuse else alone
        never = dequeue(1000, 1000, None)
        for late in once + there:
            for early in once:
                put, other = tried[late][0], tried[early][0]
                put_end = (put.finish or 0) if put.outcome == "ok" else 1000
                first, second = taken.get(late, [never])[0], taken[early][0]
                is_later = (second.finish or 0) < first.start
                if late != early and first is second:  # one drain, in the order of its answer
                    answer = list(first.values or ())
                    is_later = answer.index(early) < answer.index(late)
                if put_end < other.start and is_later:
                    collected["queue-order"] += 1
        held = [
            (put.finish or 0, taken.get(value, [never])[0].start)
            for value in once + there
            for put in tried[value]
            if put.outcome == "ok"
        ]
        collected["queue-empty"] += sum(
            all(any(since < instant < until for since, until in held) for instant in moments(call))
            for call in own
            if call.outcome == "ok" and (call.f == "drain" or call.value is None)
        )
    return collected


def moments(call: Call) -> list[float]:
    """When an operation was under way: at each moment at which something happens, and between."""
    return [half / 2 for half in range(80) if call.start <= half / 2 <= (call.finish or 0)]


def random_calls(rng: Random) -> list[Call]:
    """Few operations: values that are mostly put in once and taken out once, in any order."""
    calls = []
    values = rng.sample(range(6), rng.randint(1, 5))
    for value in values:
        start, key = rng.randint(0, 12), rng.choice([None, None, 1])
        outcome = rng.choice(["ok"] * 6 + ["fail", "info", "none"])
        calls.append(enqueue(start, start + rng.randint(0, 5), value, outcome, key))
    for value in rng.sample(values, len(values)):
        start, key = rng.randint(4, 24), rng.choice([None, None, None, 1])
        outcome = rng.choice(["ok"] * 9 + ["fail", "info", "none"])
        finish = start + rng.randint(0, 5)
        how = rng.random()
        if how < 0.6:
            calls.append(dequeue(start, finish, value, outcome, key))
        elif how < 0.7:
            calls.append(dequeue(start, finish, rng.choice([None, None, 0, 1]), outcome, key))
        elif how < 0.9:
            some = [rng.randint(0, 5) for _ in range(rng.randint(0, 2))]
            calls.append(drain(start, finish, *some, outcome=outcome, key=key))
    return calls


def agree(seeds: Iterable[int]) -> dict[str, int]:
    """Compare with the slow count; return how often each anomaly was met."""
    met = dict.fromkeys(ANOMALIES, 0)
    for seed in seeds:
        rng = Random(seed)
        calls = random_calls(rng)
        results = judge(FifoQueue(), events(*calls), [rng.randint(0, 20)])
        for name, count in counted(calls).items():
            wrong = [
                finding
                for finding in results[name].findings
                if finding.verdict == "invalid" and SEARCHED not in finding.sentence
            ]
            assert bool(wrong) == bool(count), (seed, name, calls)
            if name != "queue-order":
                assert len(wrong) == count, (seed, name, calls)
            met[name] += bool(count)
    return met


def test_looking_at_every_value_agrees() -> None:
    assert min(agree(range(400)).values()) > 8


@pytest.mark.nightly
def test_looking_at_every_value_agrees_ten_thousand_times() -> None:
    assert min(agree(range(10_000, 20_000)).values()) > 100


def step(draw: st.DrawFn, drawn: Drawn) -> Call:
    """An enqueue, or a dequeue of the first value."""
    if draw(st.booleans()):
        outcome = draw(st.sampled_from(["ok", "ok", "info", "fail"]))
        drawn.held.extend([] if outcome == "fail" else [drawn.number])
        return enqueue(drawn.start, drawn.finish, drawn.number, outcome, drawn.key)
    value = drawn.held.pop(0) if drawn.held else None
    return dequeue(drawn.start, drawn.finish, value, "ok", drawn.key)


@settings(max_examples=60)
@given(true_histories(step, drain))
def test_true_histories_pass(calls: list[Call]) -> None:
    assert findings_of(FifoQueue(), calls) == []


@settings(max_examples=60)
@given(true_histories(step, drain), st.sampled_from(ANOMALIES))
def test_one_anomaly_is_found_and_named(calls: list[Call], anomaly: str) -> None:
    puts = [enqueue(1050, 1051, 98, key=3), enqueue(1052, 1053, 99, key=3)]
    takes = {
        "queue-lost": [dequeue(1100, 1101, 98, key=3), drain(1102, 1103, key=3)],
        "queue-unexpected": [drain(1100, 1101, 98, 99, 97, key=3)],
        "queue-duplicate": [drain(1100, 1101, 98, 99, key=3), dequeue(1102, 1103, 98, key=3)],
        "queue-order": [dequeue(1100, 1101, 99, key=3), dequeue(1102, 1103, 98, key=3)],
        "queue-empty": [dequeue(1098, 1099, None, key=3), drain(1100, 1101, 98, 99, key=3)],
    }[anomaly]
    assert broken(FifoQueue(), *calls, *puts, *takes) == {anomaly: 1}
