"""Session guarantees and monotonic atomic view: a history is convicted exactly if no execution keeps the guarantee."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from nemesis.checkers.breaks.transactions import Micro, r, w
from nemesis.checkers.cycles.check import ListAppend, RwRegister
from nemesis.checkers.cycles.models import MODELS, Guarantee
from nemesis.checkers.framework.model import Verdict, combine
from tests.checkers.cycles.brute_force import Txn
from tests.checkers.cycles.guarantee_executions import keeps
from tests.checkers.cycles.random_executions import random_execution
from tests.checkers.cycles.random_histories import events, tiny
from tests.checkers.histories import judge

GUARANTEES = [name for name, model in MODELS.items() if model.guarantee is not Guarantee.NONE]


def verdict(txns: list[Txn], model: str, *, lists: bool) -> Verdict:
    check = (ListAppend if lists else RwRegister)(MODELS[model])
    return combine(result.verdict for result in judge(check, events(txns)).values())


def agree(seed: int, *, lists: bool, most: int) -> Counter[tuple[str, bool]]:
    draw = random_execution if seed % 3 else tiny
    txns = draw(Random(seed), lists=lists, most=most)
    counts: Counter[tuple[str, bool]] = Counter()
    for model in GUARANTEES:
        expected = keeps(txns, model, lists=lists)
        is_invalid = verdict(txns, model, lists=lists) is Verdict.INVALID
        assert is_invalid != expected, (seed, model, expected, txns)
        counts[model, expected] += 1
    return counts


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "registers"])
def test_some_hundred_histories(*, lists: bool) -> None:
    counts = sum((agree(seed, lists=lists, most=4) for seed in range(200)), Counter())
    for model in GUARANTEES:
        assert counts[model, False] > 2, counts
        assert counts[model, True] > 10, counts


def smallest(*plan: tuple[str, tuple[Micro, ...]]) -> list[Txn]:
    """Transactions one after the other: process and micro-operations."""
    return [
        Txn(number, micro, "ok", 10 * number, 10 * number + 5, process)
        for number, (process, micro) in enumerate(plan, start=1)
    ]


SMALLEST = {
    "read-your-writes": smallest(("a", (w(5, 1),)), ("a", (r(5),))),
    "monotonic-reads": smallest(("a", (w(5, 1),)), ("b", (r(5, 1),)), ("b", (r(5),))),
    "monotonic-writes": smallest(("a", (w(5, 1),)), ("a", (w(5, 2),)), ("b", (r(5, 2, 1),))),
    "writes-follow-reads": smallest(
        ("a", (w(5, 1), w(6, 3))), ("b", (r(5, 1),)), ("b", (w(6, 2),)), ("c", (r(6, 2, 3),))
    ),
    "monotonic-atomic-view": smallest(("a", (w(5, 1), w(6, 1))), ("b", (r(5, 1), r(6)))),
}
"""By guarantee, the smallest lists that break it."""


@pytest.mark.parametrize("model", GUARANTEES)
def test_the_smallest_break_of_a_guarantee_breaks_no_other(model: str) -> None:
    broken = {
        name for name in GUARANTEES if verdict(SMALLEST[model], name, lists=True) is Verdict.INVALID
    }
    assert broken == {model}


def sentences(txns: list[Txn], model: str, *, lists: bool) -> list[str]:
    check = (ListAppend if lists else RwRegister)(MODELS[model])
    (item,) = judge(check, events(txns))["cycle-exists"].findings
    return [item.sentence, *item.steps]


def test_a_missed_write_names_the_read_and_the_write() -> None:
    assert sentences(SMALLEST["read-your-writes"], "read-your-writes", lists=False) == [
        "T2 read nil of key 5, after its process, in T1, had written 1: read-your-writes forbids that."
    ]
    (sentence,) = sentences(SMALLEST["monotonic-atomic-view"], "monotonic-atomic-view", lists=True)
    assert sentence == (
        "T2 read [] of key 6, after it had read [1] of key 5 from T1, which appended to key 6, too: "
        "monotonic-atomic-view forbids that."
    )


def test_a_list_without_an_earlier_append_of_what_was_read() -> None:
    txns = smallest(("a", (w(5, 1), w(5, 3), w(6, 1))), ("b", (r(6, 1), r(5, 3))))
    (sentence,) = sentences(txns, "monotonic-atomic-view", lists=True)
    assert sentence == (
        "T2 read [3] of key 5, after it had read [1] of key 6 from T1, which appended to key 5, too: "
        "monotonic-atomic-view forbids that."
    )
    assert verdict(txns, "monotonic-atomic-view", lists=False) is Verdict.VALID


def test_two_processes_that_read_versions_in_opposite_orders() -> None:
    txns = smallest(
        ("a", (w(5, 1),)),
        ("b", (w(5, 2),)),
        ("c", (r(5, 1),)),
        ("c", (r(5, 2),)),
        ("d", (r(5, 2),)),
        ("d", (r(5, 1),)),
    )
    assert sentences(txns, "monotonic-reads", lists=False) == [
        "T1 and T2 have no order that monotonic-reads allows.",
        "T1 comes before T2: T4 read 2 of key 5, which T2 wrote, after its process, in T3, had read 1.",
        "T2 comes before T1: T6 read 1 of key 5, which T1 wrote, after its process, in T5, had read 2.",
    ]
    assert verdict(txns, "read-your-writes", lists=False) is Verdict.VALID


def test_lists_with_the_appends_of_a_process_turned_round() -> None:
    assert sentences(SMALLEST["monotonic-writes"], "monotonic-writes", lists=True) == [
        "T1 and T2 have no order that monotonic-writes allows.",
        "T1 comes before T2: process a appended in T1 and then in T2.",
        "T2 comes before T1: the lists that were read show that T1 appended after it.",
    ]


def test_a_process_that_read_what_it_wrote_only_later() -> None:
    txns = smallest(("a", (r(5, 1),)), ("a", (w(5, 1),)))
    assert sentences(txns, "writes-follow-reads", lists=False) == [
        "T2 has no order that writes-follow-reads allows.",
        "T2 comes before T2: T1 read 1 of key 5, which T2 wrote, and process a wrote later in T2.",
    ]


def test_weaker_anomalies_do_not_count_under_a_session_guarantee() -> None:
    txns = smallest(("a", (w(5, 1), w(5, 2))), ("b", (r(5, 1),)), ("b", (r(5, 2),)))
    assert verdict(txns, "monotonic-reads", lists=False) is Verdict.VALID
    assert verdict(txns, "monotonic-atomic-view", lists=False) is Verdict.INVALID


@pytest.mark.parametrize("model", GUARANTEES)
def test_writes_without_a_read_are_unknown(model: str) -> None:
    txns = smallest(("a", (w(5, 1),)), ("a", (w(5, 2),)))
    assert verdict(txns, model, lists=False) is Verdict.UNKNOWN


@pytest.mark.parametrize("model", GUARANTEES)
def test_processes_that_are_alone_with_a_transaction_show_no_session(model: str) -> None:
    txns = smallest(("a", (w(5, 1),)), ("b", (r(5, 1),)), ("c", (w(5, 2), r(5, 2))))
    if model == "monotonic-atomic-view":
        assert verdict(txns, model, lists=False) is Verdict.VALID
        return
    assert verdict(txns, model, lists=False) is Verdict.UNKNOWN
    (sentence,) = sentences(txns, model, lists=False)
    assert sentence.endswith("no process has two committed transactions, one after the other.")
    second = [*txns, Txn(4, (r(5, 2),), "ok", 40, 45, "a")]
    assert verdict(second, model, lists=False) is Verdict.VALID


def test_a_transaction_alone_in_its_process_breaks_a_guarantee_by_itself() -> None:
    txns = smallest(("a", (w(5, 1), r(5))), ("b", (r(5, 1),)))
    assert verdict(txns, "read-your-writes", lists=False) is Verdict.INVALID


def crashed(*plan: tuple[str, str, tuple[Micro, ...]]) -> list[Txn]:
    """Transactions one after the other: process, how each ended, and micro-operations."""
    return [
        Txn(number, micro, kind, 10 * number, 10 * number + 5, process)
        for number, (process, kind, micro) in enumerate(plan, start=1)
    ]


CRASHED = {
    "read-your-writes": crashed(
        ("a", "ok", (w(5, 1),)), ("a", "info", (w(6, 9),)), ("a", "ok", (r(5), r(6, 9)))
    ),
    "monotonic-reads": crashed(
        ("b", "ok", (w(5, 1),)),
        ("a", "ok", (r(5, 1),)),
        ("a", "info", (w(6, 9),)),
        ("a", "ok", (r(5), r(6, 9))),
    ),
    "monotonic-writes": crashed(
        ("a", "ok", (w(5, 1),)),
        ("a", "info", (w(6, 9),)),
        ("a", "ok", (w(5, 2),)),
        ("b", "ok", (r(5, 2, 1), r(6, 9))),
    ),
    "writes-follow-reads": crashed(
        ("b", "ok", (w(5, 1),)),
        ("a", "ok", (r(5, 1),)),
        ("a", "info", (w(6, 9),)),
        ("a", "ok", (w(5, 2),)),
        ("c", "ok", (r(5, 2, 1), r(6, 9))),
    ),
}
"""Process ``a`` goes on after a transaction in doubt, which a read proves committed."""


@pytest.mark.parametrize("model", CRASHED)
def test_a_transaction_in_doubt_does_not_end_a_session(model: str) -> None:
    txns = CRASHED[model]
    assert not keeps(txns, model, lists=True)
    assert verdict(txns, model, lists=True) is Verdict.INVALID


LATE = {
    "read-your-writes": crashed(("a", "info", (w(5, 1), w(6, 9))), ("a", "ok", (r(5), r(6, 9)))),
    "monotonic-writes": crashed(
        ("a", "info", (w(5, 1), w(6, 9))),
        ("a", "ok", (w(5, 2),)),
        ("b", "ok", (r(5, 2, 1), r(6, 9))),
    ),
}


@pytest.mark.parametrize("model", LATE)
def test_a_transaction_in_doubt_may_take_effect_after_its_session(model: str) -> None:
    assert keeps(LATE[model], model, lists=True)
    assert verdict(LATE[model], model, lists=True) is not Verdict.INVALID


@pytest.mark.parametrize("lists", [True, False])
def test_stronger_models_imply_the_guarantees(lists: bool) -> None:
    """Read atomic forbids all that monotonic atomic view forbids, and causal sessions all that sessions do."""
    for seed in range(150):
        txns = random_execution(Random(seed), lists=lists, most=4)
        for stronger in ("strong-session-causal", "read-atomic"):
            if verdict(txns, stronger, lists=lists) is Verdict.VALID:
                implied = GUARANTEES if stronger != "read-atomic" else ["monotonic-atomic-view"]
                for model in implied:
                    assert verdict(txns, model, lists=lists) is not Verdict.INVALID, (seed, model)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lists", [True, False], ids=["lists", "registers"])
def test_ten_thousand_histories(*, lists: bool) -> None:
    for seed in range(1000, 11_000):
        agree(seed, lists=lists, most=5)
