"""Registers and mutexes: smallest broken histories, true histories, and every order tried out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks import objects as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.framework.property import Check
from nemesis.checkers.linearizable import object_operations as operations
from nemesis.checkers.linearizable import register_zones as zones
from nemesis.checkers.linearizable.mutex import LinearizableMutex
from nemesis.checkers.linearizable.registers import LinearizableCasRegister, LinearizableRegister
from nemesis.history.events import Event
from tests.checkers.histories import judge, only
from tests.checkers.linearizable.objects import has_order
from tests.checkers.linearizable.register_model import mutex_after, register_after, tiny

REGISTER = "linearizable-register"


def write(start: int, finish: int, value: int, outcome: str = "ok", key: int | None = None) -> Call:
    return Call("write", start, finish, outcome, value, key=key)


def read(
    start: int, finish: int, value: int | None, outcome: str = "ok", key: int | None = None
) -> Call:
    return Call("read", start, finish, outcome, value, key=key)


def cas(start: int, finish: int, old: int, new: int, outcome: str = "ok") -> Call:
    return Call("cas", start, finish, outcome, values=(old, new))


def verdict(check: Check, *calls: Call) -> Verdict:
    return judge(check, events(*calls))[check.name].verdict


def test_a_read_of_what_was_written_is_right() -> None:
    result = only(LinearizableRegister(), events(write(1, 2, 5), read(3, 4, 5)))
    assert (result.verdict, result.checked, result.unit) == ("valid", 1, "observations")


def test_a_history_without_reads_proves_nothing() -> None:
    assert verdict(LinearizableRegister(), write(1, 2, 5)) == "unknown"


def test_a_compare_and_set_that_succeeded_is_an_observation() -> None:
    written = write(1, 2, 5)
    assert verdict(LinearizableCasRegister(), written) == "unknown"
    assert verdict(LinearizableCasRegister(), written, cas(3, 4, 5, 6)) == "valid"
    assert verdict(LinearizableCasRegister(), written, cas(3, 4, 6, 7)) == "invalid"
    assert verdict(LinearizableCasRegister(), written, cas(3, 4, 6, 7, "fail")) == "unknown"
    assert verdict(LinearizableRegister(), write(1, 2, 5), read(3, 4, 5, "info")) == "unknown"


def test_a_stale_read() -> None:
    (finding,) = only(LinearizableRegister(), breaks.LINEARIZABLE_REGISTER[4]).findings
    assert finding.sentence == (
        "the object had value 1 from 20 ns to 50 ns, as an operation before and one after show, yet value 2 must have "
        "been current in between."
    )
    assert finding.steps == (
        "write 1 was under way from 10 ns to 20 ns: 1 was current by 20 ns.",
        "read 1 was under way from 50 ns to 60 ns: 1 was current at 50 ns or later.",
        "1 was written once, so no other value was current from 20 ns to 50 ns.",
        "write 2 was under way from 30 ns to 40 ns: 2 was current at some moment of that.",
        "Both cannot be current at once.",
    )
    assert [event["time"] for event in finding.events] == [10, 20, 30, 40, 50, 60]
    assert (finding.property, finding.verdict, finding.key) == (REGISTER, "invalid", "the object")


def test_two_values_in_turns() -> None:
    events_ = events(
        write(10, 20, 1), write(11, 21, 2), read(30, 35, 1), read(40, 45, 2), read(50, 55, 1)
    )
    (finding,) = only(LinearizableRegister(), events_).findings
    assert finding.steps[3:] == (
        "write 2 was under way from 11 ns to 21 ns.",
        "read 2 was under way from 40 ns to 45 ns.",
        "So 2 was current from 21 ns to 40 ns.",
        "Both cannot be current at once.",
    )


def test_nil_does_not_come_back() -> None:
    (finding,) = only(LinearizableRegister(), breaks.LINEARIZABLE_REGISTER[1]).findings
    assert finding.sentence == (
        "the object had value nil from the beginning to 30 ns, as an operation before and one after show, yet value 1 "
        "must have been current in between."
    )
    assert finding.steps[0] == "nil is the value before all writes."
    assert len(finding.events) == 4


def test_a_value_that_nobody_wrote() -> None:
    (finding,) = only(LinearizableRegister(), breaks.LINEARIZABLE_REGISTER[0]).findings
    assert finding.sentence == "the object was read as 6, which nobody had written."
    assert [event["time"] for event in finding.events] == [3, 4]


def test_a_value_whose_write_failed() -> None:
    (finding,) = only(LinearizableRegister(), breaks.LINEARIZABLE_REGISTER[2]).findings
    assert finding.sentence == "key 7 was read as 5, whose write certainly failed."
    assert [event["time"] for event in finding.events] == [1, 2, 3, 4]


def test_a_value_that_is_read_before_it_is_written() -> None:
    (finding,) = only(LinearizableRegister(), breaks.LINEARIZABLE_REGISTER[3]).findings
    assert finding.sentence == "the object was read as 5 before the write of 5 began."


def test_a_value_whose_write_failed_may_be_written_again() -> None:
    assert (
        verdict(LinearizableRegister(), write(1, 2, 5, "fail"), write(3, 4, 5), read(5, 6, 5))
        == "valid"
    )


def test_a_write_in_doubt_may_happen_late_or_never() -> None:
    doubtful = write(1, 2, 5, "info")
    assert verdict(LinearizableRegister(), doubtful, read(3, 4, None)) == "valid"
    assert verdict(LinearizableRegister(), doubtful, read(3, 4, None), read(5, 6, 5)) == "valid"
    late = (write(3, 4, 6), read(5, 6, 6), read(7, 8, 5))
    assert verdict(LinearizableRegister(), doubtful, *late) == "valid"
    assert verdict(LinearizableRegister(), doubtful, *late, read(9, 10, 6)) == "invalid"


def test_operations_that_touch_may_be_in_either_order() -> None:
    assert verdict(LinearizableRegister(), write(1, 5, 1), read(5, 9, None)) == "valid"
    assert verdict(LinearizableRegister(), write(1, 4, 1), read(5, 9, None)) == "invalid"


def test_keys_have_nothing_to_do_with_each_other() -> None:
    reported = [
        write(1, 2, 5, key=1),
        write(3, 4, 6, key=2),
        read(5, 6, 5, key=1),
        read(7, 8, 6, key=2),
    ]
    assert verdict(LinearizableRegister(), *reported) == "valid"
    (finding,) = only(LinearizableRegister(), events(*reported, read(9, 9, None, key=2))).findings
    assert finding.key == "key 2"


def test_a_stale_read_is_one_finding_however_many_values_it_passed_over() -> None:
    events_ = events(
        write(0, 1, 0), *(write(n * 10, n * 10 + 5, n) for n in range(1, 9)), read(99, 100, 0)
    )
    (finding,) = only(LinearizableRegister(), events_).findings
    assert finding.sentence.endswith("must have been current in between, and 7 other values.")


def test_a_value_that_is_written_twice_is_searched() -> None:
    twice = (write(1, 2, 5), write(3, 4, 6), write(5, 6, 5), read(7, 8, 5))
    assert verdict(LinearizableRegister(), *twice) == "valid"
    (finding,) = only(LinearizableRegister(), events(*twice, read(9, 10, 6))).findings
    assert finding.sentence == (
        "read 6 of the object fits into no order with the operations that ended before it: it was 5 then."
    )
    assert finding.steps == (
        "4 operations ended before it, and can be put into an order.",
        "The last of them to change it was write 5 (from 5 ns to 6 ns).",
        "Whatever of that happened, the object was 5 when read 6 ended.",
        "read 6 (from 9 ns to 10 ns) needs something else, but succeeded.",
    )
    assert [event["time"] for event in finding.events] == [5, 6, 9, 10]


def test_a_compare_and_set_needs_its_first_value() -> None:
    check = LinearizableCasRegister()
    assert verdict(check, write(1, 2, 5), cas(3, 4, 5, 6), read(5, 6, 6)) == "valid"
    (finding,) = only(check, breaks.LINEARIZABLE_CAS_REGISTER[0]).findings
    assert finding.sentence == (
        "cas 6 → 7 of the object fits into no order with the operations that ended before it: it was 5 then."
    )
    assert finding.property == "linearizable-cas-register"


def test_of_two_compare_and_sets_from_one_value_one_fails() -> None:
    check = LinearizableCasRegister()
    assert verdict(check, write(1, 2, 5), cas(3, 9, 5, 6), cas(4, 8, 5, 7, "fail")) == "valid"
    assert verdict(check, write(1, 2, 5), cas(3, 9, 5, 6), cas(4, 8, 5, 7)) == "invalid"


@pytest.mark.parametrize("write_first", [True, False])
def test_which_of_two_in_doubt_has_happened_stays_open(*, write_first: bool) -> None:
    """Either may have led to the first read of 1; only the write can have led to the second, and nothing to a third."""
    doubtful = [write(3, 4, 1, "info"), cas(3, 4, 0, 1, "info")]
    reported = [write(1, 2, 0), *(doubtful if write_first else reversed(doubtful)), read(5, 6, 1)]
    reported += [write(7, 8, 5), read(9, 10, 1)]
    assert verdict(LinearizableCasRegister(), *reported) == "valid"
    reported += [write(11, 12, 5), read(13, 14, 1)]
    assert verdict(LinearizableCasRegister(), *reported) == "invalid"


def test_a_compare_and_set_without_values_decides_nothing() -> None:
    (finding,) = only(
        LinearizableCasRegister(), events(Call("cas", 1, 2), read(3, 4, None))
    ).findings
    assert finding.sentence == "A compare-and-set of the object does not state two values."
    assert finding.verdict == "unknown"


def test_the_search_gives_up_at_its_bound_and_says_so() -> None:
    events_ = events(
        *(cas(n, 100, n, n + 1, "info") for n in range(12)), write(1, 90, 0), read(95, 99, 9)
    )
    assert only(LinearizableCasRegister(), events_).verdict == "valid"
    (finding,) = only(LinearizableCasRegister(limit=3), events_).findings
    assert finding.verdict == "unknown"
    assert finding.sentence == (
        "the object is undecided: the search gave up after 3 configurations, when 1 of its operations had been put "
        "into an order."
    )


def test_a_history_that_cannot_be_paired_decides_nothing() -> None:
    events_ = events(write(1, 2, 5), read(3, 4, 6))
    again = events(write(1, 2, 5))[0]
    result = judge(LinearizableRegister(), [*events_, again])[REGISTER]
    assert result.verdict == "unknown"
    assert "begin or end the same operation" in result.findings[0].sentence


def test_a_mutex_is_held_once() -> None:
    check = LinearizableMutex()
    held = Call("acquire", 1, 2)
    assert verdict(check, held, Call("release", 3, 4), Call("acquire", 5, 6)) == "valid"
    assert verdict(check, held, Call("acquire", 5, 6, "fail")) == "valid"
    assert verdict(check, held, Call("release", 3, 4, "info"), Call("acquire", 5, 6)) == "valid"
    (finding,) = only(check, breaks.LINEARIZABLE_MUTEX[0]).findings
    assert finding.sentence == (
        "acquire of the object fits into no order with the operations that ended before it: it was held then."
    )
    assert finding.property == "linearizable-mutex"


def test_a_release_in_doubt_lets_one_in_not_two() -> None:
    reported = (
        Call("acquire", 1, 2),
        Call("release", 3, 4, "info"),
        Call("acquire", 5, 6),
        Call("acquire", 7, 8),
    )
    assert verdict(LinearizableMutex(), *reported) == "invalid"


def agree(seeds: Iterable[int]) -> tuple[int, int]:
    """Compare with every order; return how many histories were right, and how many wrong."""
    counts = {True: 0, False: 0}
    kinds: list[tuple[Check, str, bool, Hashable]] = [
        (LinearizableRegister(), "read read write", True, None),
        (LinearizableRegister(), "read write", False, None),
        (LinearizableCasRegister(), "read write cas cas", False, None),
        (LinearizableMutex(), "acquire release", False, False),
    ]
    for seed in seeds:
        rng = Random(seed)
        check, fs, distinct, initial = kinds[seed % len(kinds)]
        calls = tiny(rng, fs, distinct=distinct)
        after = mutex_after if isinstance(check, LinearizableMutex) else register_after
        expected = has_order(calls, initial, after)
        result = judge(check, events(*calls), [rng.randint(0, 12)])[check.name]
        assert (result.verdict != "invalid") == expected, (seed, calls)
        counts[expected] += 1
    return counts[True], counts[False]


def test_trying_out_every_order_agrees() -> None:
    right, wrong = agree(range(400))
    assert min(right, wrong) > 80


@pytest.mark.nightly
def test_trying_out_every_order_agrees_ten_thousand_times() -> None:
    right, wrong = agree(range(10_000, 20_000))
    assert min(right, wrong) > 2_000


def judged(reported: list[Event], cuts: list[int], worth_compiled: int) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        for module in (operations, zones):
            patch.setattr(module, "WORTH_COMPILED", worth_compiled)
        return judge(LinearizableRegister(), reported, cuts)[REGISTER]


def test_compiled_walks_say_the_same() -> None:
    verdicts = set()
    for seed in range(300):
        rng = Random(seed)
        calls = []
        for number in range(rng.randint(1, 30)):
            (call,) = tiny(rng, "read read write", distinct=False)[:1]
            start = call.start + 4 * number
            value = number if call.f == "write" else rng.choice([None, *range(number + 1)][-9:])
            key = rng.choice([None, 1]) if seed % 3 == 0 else None
            calls.append(
                replace(call, start=start, finish=start + rng.randint(0, 9), value=value, key=key)
            )
        events_ = events(*calls)
        if seed % 5 == 0:
            events_.append(rng.choice(events_))
        cuts = [rng.randint(0, 40)]
        compiled = judged(events_, cuts, 1)
        assert compiled == judged(events_, cuts, 2**60), seed
        verdicts.add((compiled.verdict, min(compiled.finding_count, 2)))
    assert len(verdicts) >= 4


@st.composite
def true_histories(draw: st.DrawFn, *, distinct: bool) -> list[Call]:
    """A true history of a register: each operation has its effect at a moment of its own inside it."""
    state: int | None = None
    calls = []
    for number in range(draw(st.integers(3, 25))):
        instant = 100 + 10 * number
        start, finish = instant - draw(st.integers(0, 60)), instant + draw(st.integers(0, 60))
        f = draw(st.sampled_from(["read", "write"] if distinct else ["read", "write", "cas"]))
        outcome = draw(st.sampled_from(["ok", "ok", "ok", "info", "none", "fail"]))
        if f == "read":
            calls.append(read(start, finish, state, outcome))
        elif f == "write":
            value = number if distinct else draw(st.integers(0, 3))
            calls.append(write(start, finish, value, outcome))
            state = state if outcome == "fail" else value
        else:
            old, new = draw(st.integers(0, 3)), draw(st.integers(0, 3))
            outcome = outcome if state == old else "fail"
            calls.append(cas(start, finish, old, new, outcome))
            state = new if outcome != "fail" else state
    return calls


@settings(max_examples=60)
@given(true_histories(distinct=True))
def test_true_histories_of_values_written_once_pass(calls: list[Call]) -> None:
    result = judge(LinearizableRegister(), events(*calls))[REGISTER]
    assert result.findings == ()


@settings(max_examples=60)
@given(true_histories(distinct=False))
def test_true_histories_of_compare_and_set_pass(calls: list[Call]) -> None:
    result = judge(LinearizableCasRegister(), events(*calls))["linearizable-cas-register"]
    assert result.findings == ()


@settings(max_examples=60)
@given(true_histories(distinct=True), st.sampled_from(["stale", "unwritten", "failed"]))
def test_one_wrong_read_is_found_and_named(calls: list[Call], anomaly: str) -> None:
    spoiled = [
        *calls,
        write(2000, 2001, 1000),
        write(2002, 2003, 1001),
        write(2004, 2005, 1002, "fail"),
    ]
    value, words = {
        "stale": (1000, "must have been current in between"),
        "unwritten": (1003, "nobody had written"),
        "failed": (1002, "certainly failed"),
    }[anomaly]
    result = judge(LinearizableRegister(), events(*spoiled, read(2010, 2011, value)))[REGISTER]
    assert result.finding_count == len(result.findings) == 1
    assert words in result.findings[0].sentence
