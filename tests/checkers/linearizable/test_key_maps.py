"""Monotonic keys and inserts that exclude each other: smallest breaks, orders tried out, and Jepsen's histories."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.linearizable.monotonic_keys import MonotonicKeys
from nemesis.checkers.linearizable.predicate_inserts import PredicateInserts
from tests.checkers.histories import judge
from tests.checkers.linearizable.monotonic_key_model import (
    Read,
    calls_of,
    never_falls,
    random_reads,
)
from tests.checkers.linearizable.objects import findings_of
from tests.nemesis.judging.foreign_judge import judged


def test_two_operations_that_contradict_each_other() -> None:
    pair, three = breaks.MONOTONIC_KEYS
    (finding,) = judge(MonotonicKeys(), pair)["monotonic-keys"].findings
    assert finding.sentence == "R1 and R2 have no order in which no key falls."
    assert finding.key == "keys 0, 1"
    assert "R1 returned 1 of key 0, and R2 2: R1 was before R2." in finding.steps
    (finding,) = judge(MonotonicKeys(), three)["monotonic-keys"].findings
    assert finding.sentence == "R1, R2 and R3 have no order in which no key falls."


def disagreements(seeds: range) -> list[int]:
    return [
        seed
        for seed in seeds
        for reads in [random_reads(Random(seed))]
        if never_falls(reads) == bool(findings_of(MonotonicKeys(), calls_of(reads)))
    ]


def test_random_reads_are_judged_as_by_trying_out_every_order() -> None:
    assert disagreements(range(300)) == []


@pytest.mark.nightly
def test_ten_thousand_random_histories() -> None:
    assert disagreements(range(10_000)) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 3))), max_size=12), st.data())
def test_a_true_history_is_valid(steps: list[tuple[int, set[int]]], data: st.DataObject) -> None:
    counts: Read = dict.fromkeys(range(4), 0)
    reads: list[Read] = []
    for incremented, keys in steps:
        counts[incremented] += 1
        reads.append({key: counts[key] for key in keys})
    reads = data.draw(st.permutations(reads))
    assert findings_of(MonotonicKeys(), calls_of(reads)) == []


def test_elles_histories() -> None:
    def history(*values: str) -> str:
        return "".join(
            f"{{:type :{kind} :process {process} :f :read :value {value if kind == 'ok' else 'nil'}}}\n"
            for process, value in enumerate(values)
            for kind in ("invoke", "ok")
        )

    assert judged(history("{:x 0 :y 0}", "{:x 1 :y 1}"), "monotonic-keys").verdict == "valid"
    wrong = judged(history("{:x 0 :y 1}", "{:x 1 :y 0}"), "monotonic-keys")
    assert wrong.verdict is Verdict.INVALID
    assert "key :x" in wrong.results[0].findings[0].steps[2]
    absent = history("{:x nil :y 1}", "{:x 1 :y nil}")
    assert judged(absent, "monotonic-keys").verdict is Verdict.INVALID
    assert judged(history('{:x "a"}'), "monotonic-keys").verdict is Verdict.UNKNOWN


def test_inserts_that_exclude_each_other() -> None:
    (finding,) = judge(PredicateInserts(), breaks.PREDICATE_INSERTS[0])[
        "predicate-inserts"
    ].findings
    assert finding.sentence == (
        "Two inserts of key 1 succeeded, each of which needs that no row of it exists."
    )
    apart = [Call("insert", 1, 2, values=(3, -1), key=key) for key in (1, 2)]
    failed = Call("insert", 1, 2, "fail", values=(-1, 4), key=1)
    doubtful = Call("insert", 1, 2, "info", values=(-1, 4), key=2)
    (result,) = judge(PredicateInserts(), events(*apart, failed, doubtful)).values()
    assert result.verdict is Verdict.VALID


def test_jepsens_inserts() -> None:
    def insert(process: int, kind: str, ids: str) -> str:
        return f"{{:type :{kind} :process {process} :f :insert :value [7 {ids}]}}\n"

    first = insert(0, "invoke", "[1 nil]") + insert(0, "ok", "[1 nil]")
    second = insert(1, "invoke", "[nil 2]")
    assert judged(first + second, "predicate-inserts").verdict is Verdict.VALID
    failed = first + second + insert(1, "fail", "[nil 2]")
    assert judged(failed, "predicate-inserts").verdict is Verdict.VALID
    both = first + second + insert(1, "ok", "[nil 2]")
    assert judged(both, "predicate-inserts").verdict is Verdict.INVALID
