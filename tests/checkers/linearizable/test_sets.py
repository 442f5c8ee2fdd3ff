"""Sets: one tiny history for each anomaly, true histories, and a slow count of the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Finding, Result
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.linearizable.sets import LinearizableSet, SetFull
from nemesis.history.events import Event
from tests.checkers.histories import judge, only
from tests.checkers.linearizable.objects import (
    Drawn,
    broken,
    findings_of,
    has_order,
    true_histories,
)
from tests.checkers.linearizable.set_model import after

ANOMALIES = property_names(SetFull)


def add(start: int, finish: int, value: int, outcome: str = "ok", key: int | None = None) -> Call:
    return Call("add", start, finish, outcome, value, key=key)


def read(
    start: int, finish: int, *values: int, outcome: str = "ok", key: int | None = None
) -> Call:
    return Call("read", start, finish, outcome, values=values, key=key)


def result(name: str, *calls: Call) -> Result:
    return only(SetFull(), events(*calls), name)


def broken_by(name: str, history: Sequence[Event]) -> Finding:
    """The one finding in one of the smallest histories that break a property."""
    (finding,) = only(LinearizableSet(), history, name).findings
    return finding


def test_what_is_added_is_read() -> None:
    calls = (add(1, 2, 5), add(3, 4, 6), read(5, 6, 5, 6))
    judged = result("set-lost", *calls)
    assert (judged.verdict, judged.checked, judged.unit) == ("valid", 2, "elements")
    assert result("set-unexpected", *calls).checked == 2
    assert broken(SetFull(), *calls) == {}


def test_an_element_that_was_never_returned_is_lost() -> None:
    finding = broken_by("set-lost", breaks.SET_LOST[0])
    assert finding.sentence == (
        "5 is lost from the object: a read that began after the add of 5 succeeded did not return it."
    )
    assert finding.steps == (
        "At 2 ns the add of 5 succeeded.",
        "A read was under way from 3 ns to 4 ns and did not return it.",
        "Nothing removes an element.",
    )
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4]
    assert finding.verdict == "invalid"


def test_an_element_that_is_no_longer_returned_is_lost() -> None:
    finding = broken_by("set-lost", breaks.SET_LOST[1])
    assert finding.sentence == (
        "5 is lost from key 3: a read that began after the last read that returned 5 had ended did not return it."
    )
    assert [event["time"] for event in finding.events] == [3, 4, 5, 6]


def test_a_read_that_overlaps_the_add_may_lack_it() -> None:
    assert broken(SetFull(), add(1, 5, 5), read(5, 6)) == {}
    assert set(broken(SetFull(), add(1, 5, 5), read(6, 7))) == {"set-lost"}


def test_a_read_that_overlaps_the_last_one_with_it_may_be_a_loss() -> None:
    calls = (add(1, 2, 5), read(3, 9, 5), read(4, 5))
    judged = only(SetFull(), breaks.SET_LOST[3], "set-lost")
    (finding,) = judged.findings
    assert (judged.verdict, finding.verdict) == ("unknown", "unknown")
    assert finding.sentence == (
        "5 may be lost from the object: the last read to begin did not return it, and another one that did was under "
        "way then."
    )
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4, 5, 9]
    assert result("set-lost", *calls, read(10, 11, 5)).verdict == "valid"
    assert result("set-lost", *calls, read(10, 11)).verdict == "invalid"
    (stale,) = only(LinearizableSet(), events(*calls), "set-stale").findings
    assert stale.sentence == (
        "A read of the object did not return 5, which was known; another one returned it meanwhile or afterwards."
    )
    assert broken(LinearizableSet(), *calls) == {"set-stale": 1}


def test_an_element_that_flutters() -> None:
    """The history of Jepsen's definition: of two overlapping reads, each lacks one element; 0 is lost, 1 is stale."""
    calls = (
        add(0, 1, 0),
        add(2, 5, 1),
        read(3, 4, 1),
        read(6, 9, 0),
        read(7, 8, 1),
    )
    (lost,) = result("set-lost", *calls).findings
    assert (lost.verdict, lost.sentence.split(":")[0]) == (
        "unknown",
        "0 may be lost from the object",
    )
    (stale,) = result("set-stale", *calls).findings
    assert (stale.verdict, stale.sentence.split(",")[0]) == (
        "valid",
        "A read of the object did not return 1",
    )
    assert broken(LinearizableSet(), *calls) == {"set-stale": 2, "set-order": 1}


def test_an_element_that_no_read_could_show_is_not_counted() -> None:
    calls = (add(1, 9, 5), read(2, 4, 5), read(3, 5))
    judged = result("set-lost", *calls)
    assert (judged.verdict, judged.checked, judged.findings) == ("unknown", 0, ())
    others = (add(10, 11, 6), read(12, 13, 5, 6))
    assert result("set-lost", *calls, *others).verdict == "valid"


def test_elements_that_were_never_read_may_be_lost_where_nothing_is_stable() -> None:
    (finding,) = only(SetFull(), breaks.SET_LOST[2], "set-lost").findings
    assert finding.verdict == "unknown"
    assert finding.sentence == (
        "2 elements were added, and no read began afterwards to show it: the first is 5 of the object."
    )


def test_a_stable_element_is_enough_for_a_set() -> None:
    """Jepsen's set-full is true if an element is stable and none is lost, and counts those that were never read."""
    calls = (add(1, 2, 1), read(3, 4, 1), add(5, 6, 2))
    judged = result("set-lost", *calls)
    (finding,) = judged.findings
    assert (judged.verdict, judged.checked, finding.verdict) == ("valid", 1, "valid")
    assert judged.numbers["never_read_elements"] == 1
    assert result("set-lost", *calls, add(5, 6, 2, key=1)).verdict == "unknown"
    assert result("set-lost", *calls, read(7, 8, 2)).verdict == "invalid"


@pytest.mark.parametrize(
    "calls", [[add(1, 2, 1)], [add(1, 2, 1, "info")], [add(1, 2, 1), read(3, 4, outcome="fail")]]
)
def test_a_linearizable_set_is_unknown_without_a_read(calls: list[Call]) -> None:
    results = judge(LinearizableSet(), events(*calls))
    assert {result.verdict for result in results.values()} == {"unknown"}
    assert (results["set-lost"].checked, results["set-lost"].unit) == (0, "reads")


def test_a_read_of_an_empty_linearizable_set_is_an_observation() -> None:
    results = judge(LinearizableSet(), events(read(1, 2)))
    assert {result.verdict for result in results.values()} == {"valid"}
    assert (results["set-order"].checked, results["set-order"].unit) == (1, "operations")


def test_an_add_in_doubt_may_be_there_or_not() -> None:
    assert broken(SetFull(), add(1, 2, 5, "info"), read(3, 4)) == {}
    judged = result("set-lost", add(1, 2, 5, "info"), read(3, 4, 5))
    assert (judged.verdict, judged.numbers["recovered_elements"]) == ("valid", 1)


def test_an_element_that_nobody_added() -> None:
    finding = broken_by("set-unexpected", breaks.SET_UNEXPECTED[0])
    assert finding.sentence == "A read of the object returned 6, which nobody had added."
    assert [event["time"] for event in finding.events] == [3, 4]


def test_an_element_whose_add_failed() -> None:
    finding = broken_by("set-unexpected", breaks.SET_UNEXPECTED[1])
    assert finding.sentence == "A read of the object returned 5, whose add certainly failed."
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4]


def test_an_element_that_is_read_before_it_is_added() -> None:
    finding = broken_by("set-unexpected", breaks.SET_UNEXPECTED[2])
    assert finding.sentence == "A read of the object returned 5, before its add began."


def test_an_element_that_stands_twice_in_one_read() -> None:
    (finding,) = result("set-duplicate", add(1, 2, 5), read(3, 4, 5, 5, 5)).findings
    assert finding.sentence == "A read of the object returned 5 more than once."
    assert [event["time"] for event in finding.events] == [3, 4]
    assert broken(SetFull(), add(1, 2, 5), read(3, 4, 5), read(5, 6, 5)) == {}


def test_a_stale_read_is_allowed_unless_the_set_is_linearizable() -> None:
    calls = (add(1, 2, 5), read(3, 4), read(5, 6, 5))
    judged = only(SetFull(), breaks.SET_STALE[0], "set-stale")
    assert (judged.verdict, judged.findings[0].verdict) == ("valid", "valid")
    assert judged.findings[0].sentence == (
        "A read of the object did not return 5, which was known; another one returned it afterwards. A set that "
        "need only in the end be what was added may do that."
    )
    assert [event["time"] for event in judged.findings[0].events] == [1, 2, 3, 4, 5, 6]
    assert broken(SetFull(), *calls) == {}
    assert set(broken(LinearizableSet(), *calls)) == {"set-stale"}


ORDERLESS = (add(1, 9, 5), add(1, 9, 6), read(1, 9, 5), read(1, 9, 6))


def test_two_reads_that_each_lack_what_the_other_has() -> None:
    finding = broken_by("set-order", breaks.SET_ORDER[1])
    assert finding.sentence == "A read of the object returned 5 without 6, another one 6 without 5."
    assert len(finding.events) == 4
    assert set(broken(LinearizableSet(), *ORDERLESS)) == {"set-order"}
    assert broken(SetFull(), *ORDERLESS) == {}


def test_a_read_of_the_newer_without_the_older() -> None:
    calls = (add(1, 2, 5), add(3, 4, 6), read(1, 9, 6))
    finding = broken_by("set-order", breaks.SET_ORDER[0])
    assert finding.sentence == (
        "A read of the object returned 6 without 5, which had been added before."
    )
    assert [event["time"] for event in finding.events] == [1, 1, 2, 3, 4, 9]
    assert set(broken(LinearizableSet(), *calls)) == {"set-order"}
    assert broken(LinearizableSet(), add(1, 3, 5), *calls[1:]) == {}


def agree_on_order(seeds: Iterable[int]) -> dict[str, int]:
    """Compare the linearizable set with all orders; return how often some property alone was broken."""
    met = dict.fromkeys([*property_names(LinearizableSet), "nothing"], 0)
    for seed in seeds:
        rng = Random(seed)
        calls: list[Call] = []
        held: set[int] = set()
        for number in range(rng.randint(4, 8)):
            start, finish = number - rng.randint(0, 4), number + rng.randint(0, 4)
            if rng.random() < 0.5:
                outcome = rng.choice(["ok", "ok", "ok", "fail", "info"])
                value = rng.randint(0, 3)
                calls.append(add(start, finish, value, outcome))
                held |= set() if outcome == "fail" else {value}
            else:
                other = {rng.randint(0, 3)}
                returned = rng.choice([held, held, held - other, held - other, held ^ other])
                calls.append(read(start, finish, *returned))
        wrong = broken(LinearizableSet(), *calls)
        assert bool(wrong) != has_order(calls, frozenset(), after), (seed, wrong, calls)
        for name in wrong or ["nothing"]:
            met[name] += len(wrong) < 2
    return met


def test_all_orders_agree_on_a_linearizable_set() -> None:
    met = agree_on_order(range(400))
    assert min(met[name] for name in ("set-unexpected", "set-stale", "set-order", "nothing")) > 4


@pytest.mark.nightly
def test_all_orders_agree_on_a_linearizable_set_ten_thousand_times() -> None:
    assert agree_on_order(range(10_000, 20_000))["set-order"] > 100


def test_sets_of_different_keys_have_nothing_to_do_with_each_other() -> None:
    calls = (add(1, 2, 5, key=1), read(3, 4, 5, key=1), read(3, 4, key=2))
    assert broken(SetFull(), *calls) == {}
    assert set(broken(SetFull(), *calls, read(5, 6, 5, key=2))) == {"set-unexpected"}


def test_a_history_without_reads_proves_nothing() -> None:
    results = judge(SetFull(), events(add(1, 2, 5)))
    assert {result.verdict for result in results.values()} == {"unknown"}


def counted(calls: list[Call]) -> dict[str, set[tuple[int | None, int]]]:
    """The same by looking at every element and every read."""
    collected: dict[str, set[tuple[int | None, int]]] = {name: set() for name in ANOMALIES}
    reads = [call for call in calls if call.f == "read" and call.outcome == "ok"]
    elements = {(call.key, call.value) for call in calls if call.value is not None}
    elements |= {(call.key, value) for call in reads for value in call.values or ()}
    for key, value in elements:
        own = [read for read in reads if read.key == key]
        adds = [
            call for call in calls if call.f == "add" and (call.key, call.value) == (key, value)
        ]
        tried = [add.start for add in adds if add.outcome != "fail"]
        has = [item for item in own if value in (item.values or ())]
        unsupported = [item for item in own if item not in has]
        acknowledged = [add.finish or 0 for add in adds if add.outcome == "ok"]
        known = min([*acknowledged, *(item.finish or 0 for item in has)], default=None)
        if any(not tried or (item.finish or 0) < min(tried) for item in has):
            collected["set-unexpected"].add((key, value))
        if any((item.values or ()).count(value) > 1 for item in has):
            collected["set-duplicate"].add((key, value))
        if known is None:
            continue
        since = max(item.finish or 0 for item in has) if has else known
        if any(gap.start > since for gap in unsupported):
            collected["set-lost"].add((key, value))
        elif any(gap.start > known for gap in unsupported):
            collected["set-stale"].add((key, value))
    return collected


def jepsens_outcomes(calls: list[Call]) -> dict[int, str]:
    """Each element as Jepsen's set-full defines it; ``proved`` is lost where no read that has it may be the newest."""
    reads = [call for call in calls if call.f == "read" and call.outcome == "ok"]
    outcomes = {}
    values = {call.value for call in calls if call.value is not None}
    for value in values | {value for item in reads for value in item.values or ()}:
        present = [item for item in reads if value in (item.values or ())]
        absent = max((item.start for item in reads if item not in present), default=-1)
        newest = max((item.start for item in present), default=-1)
        ends = [item.finish or 0 for item in present]
        added = [
            call.finish or 0
            for call in calls
            if (call.f, call.value, call.outcome) == ("add", value, "ok")
        ]
        is_known_before = min([*added, *ends], default=absent) < absent
        if newest > absent:
            outcomes[value] = "stable"
        elif is_known_before:
            outcomes[value] = "lost" if max(ends, default=-1) > absent else "proved"
        else:
            outcomes[value] = "unread" if added and not present else "never-read"
    return outcomes


def agree_on_outcomes(seeds: Iterable[int]) -> dict[str, int]:
    """Compare set-lost with Jepsen's outcomes; return how often each was met."""
    met = dict.fromkeys(["stable", "lost", "proved", "unread", "never-read"], 0)
    for seed in seeds:
        rng = Random(seed)
        instants = iter(rng.sample(range(100), 16))
        calls = []
        for _ in range(rng.randint(2, 8)):
            start, finish = sorted((next(instants), next(instants)))
            if rng.random() < 0.4:
                calls.append(add(start, finish, rng.randint(0, 2), rng.choice(["ok", "info"])))
            else:
                calls.append(read(start, finish, *rng.sample(range(3), rng.randint(0, 2))))
        outcomes = jepsens_outcomes(calls)
        judged = result("set-lost", *calls)
        kinds = set(outcomes.values())
        for outcome in kinds:
            met[outcome] += 1
        expected = "valid" if kinds & {"stable"} else "unknown"
        expected = "unknown" if "lost" in kinds else expected
        expected = "invalid" if "proved" in kinds else expected
        assert judged.verdict == expected, (seed, outcomes, calls)
    return met


def test_jepsens_outcomes_of_elements() -> None:
    assert min(agree_on_outcomes(range(400)).values()) > 20


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_jepsens_outcomes_of_elements_ten_thousand_times() -> None:
    assert min(agree_on_outcomes(range(10_000, 20_000)).values()) > 500


def agree(seeds: Iterable[int]) -> dict[str, int]:
    """Compare with the slow count; return how often each anomaly was met."""
    met = dict.fromkeys(ANOMALIES, 0)
    for seed in seeds:
        rng = Random(seed)
        calls = []
        for _ in range(rng.randint(1, 9)):
            start, key = rng.randint(0, 20), rng.choice([None, 1])
            finish, outcome = (
                start + rng.randint(0, 8),
                rng.choice(["ok", "ok", "ok", "fail", "info"]),
            )
            if rng.random() < 0.5:
                calls.append(add(start, finish, rng.randint(0, 3), outcome, key))
            else:
                values = [rng.randint(0, 3) for _ in range(rng.randint(0, 4))]
                calls.append(read(start, finish, *values, outcome=outcome, key=key))
        results = judge(LinearizableSet(), events(*calls), [rng.randint(0, 20)])
        for name, elements in counted(calls).items():
            wrong = [finding for finding in results[name].findings if finding.verdict == "invalid"]
            reported = {(item.key, item.sentence) for item in wrong}
            assert (results[name].verdict == "invalid") == bool(elements), (seed, name, calls)
            assert len(reported) >= len(elements), (seed, name, calls)
            met[name] += bool(elements)
    return met


def test_looking_at_every_element_and_every_read_agrees() -> None:
    assert min(agree(range(300)).values()) > 8


@pytest.mark.nightly
def test_looking_at_every_element_and_every_read_agrees_ten_thousand_times() -> None:
    assert min(agree(range(10_000, 20_000)).values()) > 200


def step(draw: st.DrawFn, drawn: Drawn) -> Call:
    """An add, or a read of all elements."""
    outcome = draw(st.sampled_from(["ok", "ok", "info", "fail"]))
    if draw(st.booleans()):
        return read(drawn.start, drawn.finish, *drawn.held, outcome=outcome, key=drawn.key)
    drawn.held.extend([] if outcome == "fail" else [drawn.number])
    return add(drawn.start, drawn.finish, drawn.number, outcome, drawn.key)


@settings(max_examples=60)
@given(true_histories(step, read))
def test_true_histories_pass(calls: list[Call]) -> None:
    assert findings_of(LinearizableSet(), calls) == []


@settings(max_examples=60)
@given(true_histories(step, read), st.sampled_from(ANOMALIES))
def test_one_anomaly_is_found_and_named(calls: list[Call], anomaly: str) -> None:
    spoiled = {
        "set-lost": [read(1100, 1101, 98, key=3), read(1102, 1103, key=3)],
        "set-unexpected": [read(1100, 1101, 98, 97, key=3)],
        "set-duplicate": [read(1100, 1101, 98, 98, key=3)],
        "set-stale": [read(1100, 1101, key=3), read(1102, 1103, 98, key=3)],
    }[anomaly]
    calls = [*calls, add(1050, 1051, 98, key=3), *spoiled]
    assert broken(LinearizableSet(), *calls) == {anomaly: 1}


@settings(max_examples=60)
@given(true_histories(step, read))
def test_reads_without_an_order_are_found_and_named(calls: list[Call]) -> None:
    spoiled = [add(1000, 1009, 98, key=3), add(1000, 1009, 97, key=3)]
    spoiled += [read(1000, 1009, 98, key=3), read(1000, 1009, 97, key=3)]
    assert set(broken(LinearizableSet(), *calls, *spoiled)) == {"set-order"}
