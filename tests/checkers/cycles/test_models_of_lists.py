"""The smallest histories of lists that the consistency models tell apart, and what each model says of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nemesis.checkers.breaks.transactions import append, history, r, together, txn
from nemesis.checkers.cycles.check import ListAppend
from nemesis.checkers.cycles.models import MODELS
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import judge


def broken(events: Sequence[Event], model: str) -> list[Finding]:
    """Return the findings that the model forbids."""
    results = judge(ListAppend(MODELS[model]), events)
    findings = [item for result in results.values() for item in result.findings]
    return [item for item in findings if item.verdict is not Verdict.VALID]


@pytest.mark.parametrize("prefix", ["", "strong-session-", "strong-"])
@pytest.mark.parametrize("model", ["read-atomic", "causal"])
def test_a_list_without_the_earlier_append_of_a_transaction_is_a_part_of_it(
    model: str, prefix: str
) -> None:
    """With two keys instead of one the same part is missing."""
    events = together([append(5, 1), append(5, 2)], [r(5, 2)])
    (item,) = broken(events, prefix + model)
    assert (item.property, item.verdict, item.key) == ("cycle-exists", Verdict.INVALID, "key 5")
    assert item.sentence == (
        "T2 read [2] of key 5, without 1, which T1 had appended before 2: "
        f"{prefix}{model} forbids a read of a part of a transaction."
    )
    assert [event["op"] for event in item.events] == [1, 2]
    two_keys = together([append(6, 1), append(5, 2)], [r(5, 2), r(6)])
    assert [item.property for item in broken(two_keys, prefix + model)] == ["cycle-exists"]


def test_weaker_models_allow_a_list_with_a_part_of_a_transaction() -> None:
    events = together([append(5, 1), append(5, 2)], [r(5, 2)])
    assert broken(events, "read-committed") == []
    assert [i.property for i in broken(events, "parallel-snapshot-isolation")] == ["G-single"]


def test_a_transaction_in_doubt_of_which_a_part_was_read() -> None:
    events = history(
        txn(1, append(5, 1), append(5, 2), index=(1, 5), kind="info"), txn(2, r(5, 2), index=(6, 9))
    )
    assert [item.property for item in broken(events, "causal")] == ["cycle-exists"]


def test_a_list_without_the_later_append_is_half_of_a_transaction_and_no_part_skipped() -> None:
    events = together([append(5, 1), append(5, 2)], [r(5, 1)])
    assert [item.property for item in broken(events, "read-atomic")] == ["G1b"]


IN_DOUBT_WHEN_READ = history(
    txn(1, append(5, 1), index=(1, 4), kind="fail"),
    txn(2, r(5, 1), index=(2, 3)),
    txn(3, append(5, 2), index=(5, 6)),
    txn(4, r(5, 2), index=(7, 8)),
)


def test_read_uncommitted_allows_a_read_of_what_is_rolled_back_later() -> None:
    assert broken(IN_DOUBT_WHEN_READ, "read-uncommitted") == []
    assert broken(IN_DOUBT_WHEN_READ, "strong-read-uncommitted") == []
    names = {item.property for item in broken(IN_DOUBT_WHEN_READ, "read-committed")}
    assert names == {"incompatible-order", "G1a"}


@pytest.mark.parametrize(("kind", "names"), [("info", []), ("fail", []), ("ok", ["G0"])])
def test_under_read_uncommitted_a_read_proves_no_commit(kind: str, names: list[str]) -> None:
    """Two lists have the appends in opposite orders. No G0 if the first transaction aborted after the reads."""
    events = history(
        txn(1, append(5, 1), append(6, 1), index=(1, 20), kind=kind),
        txn(2, append(5, 2), append(6, 2), index=(2, 10)),
        txn(3, r(5, 1, 2), r(6, 2, 1), index=(11, 12)),
    )
    assert [item.property for item in broken(events, "read-uncommitted")] == names
    if kind == "info":
        assert "G0" in {item.property for item in broken(events, "read-committed")}
