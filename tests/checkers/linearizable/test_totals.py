"""Counters, generators of ids and banks: smallest breaks, all orders tried out, and true histories."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.linearizable.banks import Bank
from nemesis.checkers.linearizable.counters import Counter
from nemesis.checkers.linearizable.eventual_counters import EventualCounter
from nemesis.checkers.linearizable.unique_ids import UniqueIds
from nemesis.history.events import Event
from tests.checkers.histories import judge
from tests.checkers.linearizable.objects import has_order
from tests.nemesis.judging.foreign_judge import judged


def sentences(
    check: Bank | Counter | EventualCounter | UniqueIds, events: Iterable[Event]
) -> list[str]:
    return [item.sentence for result in judge(check, events).values() for item in result.findings]


def test_a_counter_that_is_read_as_too_little_or_too_much() -> None:
    low, high, failed = breaks.COUNTER_BOUNDS
    assert sentences(Counter(), low) == [
        "the object was read as 0, though what had been added before it began makes 1."
    ]
    assert sentences(Counter(), high) == [
        "the object was read as 1, though all adds that had begun when it ended make 0."
    ]
    assert sentences(Counter(), failed)[0].startswith("key 7 was read as 1, though all adds")
    assert sentences(Counter(initial=1), failed) == []


def test_a_counter_that_falls() -> None:
    assert sentences(Counter(), breaks.COUNTER_MONOTONIC[0]) == [
        "the object was read as 0, though a read that had ended before returned 1."
    ]


def test_a_counter_that_returns_a_part_of_an_add() -> None:
    part, early, failed = map(partial(sentences, EventualCounter()), breaks.COUNTER_SUM)
    no_final = "the object has no successful read that :final? true marks, so nothing states when it had every add."
    assert part == [
        "the object was read as 1, though the adds that had begun make only 0 or 2.",
        no_final,
    ]
    assert early == [
        "the object was read as 1, though the adds that had begun make only 0.",
        no_final,
    ]
    assert failed[0] == "key 7 was read as -1, though the adds that had begun make only 0."


def test_a_counter_that_lacks_an_add_at_the_end() -> None:
    lost, doubtful = map(partial(sentences, EventualCounter()), breaks.COUNTER_FINAL)
    said = "though the adds that had succeeded, with any of unknown outcome, make only"
    assert lost == [f"the object was read as 0 in a final read, {said} 1."]
    assert doubtful == [f"the object was read as -2 in a final read, {said} -1 or 1."]


def test_the_completion_states_whether_a_read_is_final() -> None:
    added = line("invoke", "add", "2") + line("ok", "add", "2")
    final = line("invoke", "read", "nil"), line("ok", "read", "0").replace("}", " :final? true}")
    assert judged(added + "".join(final), "g-counter").verdict is Verdict.INVALID
    reads = final[0].replace("}", " :final? true}") + line("invoke", "read", "nil")
    late = line("ok", "read", "0")
    outcome = judged(added + reads + late, "g-counter")
    assert [result.verdict for result in outcome.results] == [Verdict.VALID, Verdict.UNKNOWN]


def test_an_add_of_an_unknown_amount_explains_what_is_read_after_it_began() -> None:
    unstated = Call("add", 5, 6)
    final = Call("final-read", 7, 8, value=9)
    early = Call("read", 1, 2, value=9)
    results = judge(EventualCounter(), events(unstated, final))
    assert {result.verdict for result in results.values()} == {Verdict.UNKNOWN}
    results = judge(EventualCounter(), events(unstated, final, early))
    assert results["counter-sum"].verdict is Verdict.INVALID


def test_adds_in_doubt_with_too_many_sums_leave_a_read_undecided() -> None:
    doubtful = [Call("add", n, n + 1, "info", value=3 * 5**n) for n in range(17)]
    at_end = [
        Call("final-read", 90, 99, value=value) for value in (3 * 5**3 + 15, 4, -3, 3 * 5**17)
    ]
    (undecided, *_), *wrong = (
        judge(EventualCounter(), events(*doubtful, read))["counter-final"].findings
        for read in at_end
    )
    assert undecided.verdict is Verdict.UNKNOWN
    assert undecided.sentence.endswith("have too many different sums.")
    assert [item.verdict for (item,) in wrong] == [Verdict.INVALID] * 3
    even = [Call("add", n, n + 1, "info", value=(-2) ** (n % 30)) for n in range(10_000)]
    read = Call("final-read", 10**5, 10**6, value=-(10**6))
    assert judge(EventualCounter(), events(*even, read))["counter-final"].verdict == "valid"


def test_an_id_that_is_generated_twice() -> None:
    assert sentences(UniqueIds(), breaks.UNIQUE_IDS[0]) == ["The id 7 was generated twice."]
    different = [Call("generate", 1, 2, value=7), Call("generate", 1, 2, value=8)]
    assert sentences(UniqueIds(), events(*different)) == []
    in_doubt = [Call("generate", 1, 2, value=7), Call("generate", 1, 2, "info", value=7)]
    assert sentences(UniqueIds(), events(*in_doubt)) == []


def test_a_bank_that_loses_money() -> None:
    assert sentences(Bank(), breaks.BANK_TOTAL[0]) == [
        "The balances of a read come to 9, those of another one to 10."
    ]


def test_the_accounts_of_a_bank() -> None:
    missing, extra, nil = breaks.BANK_ACCOUNTS
    assert sentences(Bank(), missing) == ["A read lacks account 1, which most reads have."]
    assert sentences(Bank(), extra) == ["A read returned account 2, which most reads do not have."]
    assert sentences(Bank(), nil)[0].endswith("which is not a whole number.")
    assert sentences(Bank(), breaks.BANK_NEGATIVE[0]) == ["Account 0 was read as -1."]


def line(kind: str, f: str, value: str, process: int = 0) -> str:
    return f"{{:type :{kind} :process {process} :f :{f} :value {value}}}\n"


def test_jepsens_words() -> None:
    read = line("invoke", "read", "nil")
    bank = read + line("ok", "read", "{0 5, 1 -2}") + read + line("ok", "read", "{0 3, 1 0}")
    outcome = judged(bank, "bank")
    assert [result.verdict for result in outcome.results] == ["valid", "valid", "invalid"]
    nil = judged(read + line("ok", "read", "{0 5, 1 nil}"), "bank")
    assert nil.results[1].findings[0].sentence == (
        "Account 1 was read as nil, which is not a whole number."
    )
    ids = line("invoke", "generate", "nil") + line("ok", "generate", "[3 4]")
    assert judged(ids, "unique-ids").verdict is Verdict.VALID
    assert judged(ids * 2, "unique-ids").verdict is Verdict.INVALID
    added = line("invoke", "add", "2") + line("ok", "add", "2") + read
    assert judged(added + line("ok", "read", "2"), "counter").verdict is Verdict.VALID
    assert judged(added + line("ok", "read", "1"), "counter").verdict is Verdict.INVALID
    assert judged(added + line("ok", "read", "5"), "counter", initial="3").verdict == "valid"
    falling = line("invoke", "add", "-2") + line("ok", "add", "-2")
    assert judged(falling + read + line("ok", "read", "0"), "counter").verdict is Verdict.UNKNOWN


def counters() -> st.SearchStrategy[list[Call]]:
    call = st.builds(
        lambda f, start, length, outcome, value: Call(f, start, start + length, outcome, value),
        st.sampled_from(["add", "read"]),
        st.integers(1, 20),
        st.integers(1, 12),
        st.sampled_from(["ok", "ok", "ok", "info", "fail"]),
        st.integers(0, 3),
    )
    return st.lists(call, max_size=6)


def added(state: Hashable, call: Call) -> Iterable[Hashable]:
    assert isinstance(state, int)
    assert call.value is not None
    if call.f == "add":
        return (state + call.value,)
    return (state,) if call.value == state or call.outcome != "ok" else ()


def wrong_reads(calls: list[Call]) -> set[str]:
    """Which properties are broken, by looking at every pair of operations."""
    adds = [call for call in calls if call.f == "add"]
    reads = [call for call in calls if call.f == "read" and call.outcome == "ok"]
    wrong = set()
    for read in reads:
        low = sum(
            add.value or 0 for add in adds if add.outcome == "ok" and (add.finish or 0) < read.start
        )
        high = sum(
            add.value or 0
            for add in adds
            if add.outcome != "fail" and add.start <= (read.finish or 0)
        )
        if not low <= (read.value or 0) <= high:
            wrong.add("counter-bounds")
        if any(
            (other.finish or 0) < read.start and (other.value or 0) > (read.value or 0)
            for other in reads
        ):
            wrong.add("counter-monotonic")
    return wrong


@given(counters())
def test_looking_at_every_pair_and_every_order_agrees(calls: list[Call]) -> None:
    results = judge(Counter(), events(*calls))
    broken = {name for name, result in results.items() if result.verdict is Verdict.INVALID}
    assert broken == wrong_reads(calls)
    if broken:
        assert not has_order(calls, 0, added)


@given(st.lists(st.lists(st.integers(-2, 4), min_size=2, max_size=2), min_size=1, max_size=6))
def test_a_bank_is_right_if_all_sums_are_the_same(reads: list[list[int]]) -> None:
    calls = [
        Call("read", 10 * number, 10 * number + 5, values=(0, a, 1, b))
        for number, (a, b) in enumerate(reads)
    ]
    results = judge(Bank(), events(*calls))
    is_constant = len({sum(balances) for balances in reads}) == 1
    assert (results["bank-total"].verdict is Verdict.VALID) == is_constant
    is_negative = any(balance < 0 for balances in reads for balance in balances)
    assert (results["bank-negative"].verdict is Verdict.INVALID) == is_negative
    assert results["bank-accounts"].verdict is Verdict.VALID
