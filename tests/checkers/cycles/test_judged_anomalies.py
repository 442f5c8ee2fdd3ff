"""An anomaly that does not count, or whose result is not used, hides no cycle that no order of versions avoids."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nemesis.checkers import select_foreign
from nemesis.checkers.breaks.transactions import append, history, r, together, txn, w
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import judge

HALF_READ = (
    txn(1, w(5, 1), w(6, 1), index=(1, 3)),
    txn(2, w(5, 2), w(6, 2), index=(2, 20), kind="info"),
    txn(3, r(5, 1), r(6, 2), index=(4, 5)),
)
"""In each order of the writes of both keys a cycle results, and none has a name."""
ABORTED_READ = (txn(4, w(7, 9), index=(6, 7), kind="fail"), txn(5, r(7, 9), index=(8, 9)))
CIRCULAR = (
    txn(4, w(7, 1), r(8, 1), index=(30, 40)),
    txn(5, w(8, 1), r(7, 1), index=(30, 40)),
)


def existence(
    events: Sequence[Event],
    workload: str = "rw-register",
    names: Sequence[str] | None = None,
    anomalies: Sequence[str] = (),
) -> Result:
    """Return the result of ``cycle-exists`` if these properties, or these anomalies, are asked for."""
    return judge(select_foreign(workload, names, anomalies=anomalies), events)["cycle-exists"]


@pytest.mark.parametrize(
    ("names", "anomalies"), [(["cycle-exists"], []), (None, ["G2-item"]), (None, ["G-single"])]
)
def test_a_read_of_an_aborted_write_hides_no_cycle(
    names: list[str] | None, anomalies: list[str]
) -> None:
    for events in (history(*HALF_READ), history(*HALF_READ, *ABORTED_READ)):
        result = existence(events, names=names, anomalies=anomalies)
        assert result.verdict is Verdict.INVALID
    assert (
        existence(history(*ABORTED_READ), names=names, anomalies=anomalies).verdict is Verdict.VALID
    )


def test_an_anomaly_that_counts_ends_the_search() -> None:
    result = existence(history(*HALF_READ, *ABORTED_READ))
    assert (result.verdict, result.findings) == (Verdict.VALID, ())


def test_a_cycle_whose_name_is_not_judged_is_in_every_order() -> None:
    (item,) = existence(history(*CIRCULAR), names=["cycle-exists"]).findings
    assert (item.property, item.verdict) == ("cycle-exists", Verdict.INVALID)
    assert item.steps[0] == "T4 comes before T5: T5 read 1 of key 7, which T4 wrote."
    lists = together([append(5, 1), r(6, 1)], [append(6, 1), r(5, 1)])
    assert existence(lists, "list-append", ["cycle-exists"]).verdict is Verdict.INVALID


def test_a_cycle_that_does_not_count_leaves_others_undecided() -> None:
    result = existence(history(*HALF_READ, *CIRCULAR), anomalies=["G2-item"])
    assert result.verdict is Verdict.UNKNOWN
    assert [item.sentence for item in result.findings] == [
        (
            "It is not decided whether an order of the versions keeps freedom from G2-item: "
            "a G1c, which does not count, is in every order."
        )
    ]
    lists = together([append(5, 1), r(6, 1)], [append(6, 1), r(5, 1)])
    assert existence(lists, "list-append", anomalies=["G2-item"]).verdict is Verdict.VALID


def test_lists_that_differ_show_no_cycle_if_they_do_not_count() -> None:
    """T3 and T4 read one append each, and T5 what T3 read again: no list is how the other one begins."""
    events = history(
        txn(1, append(5, 1), append(6, 1), index=(1, 2)),
        txn(2, append(5, 2), append(6, 2), index=(1, 2)),
        txn(3, r(5, 1), r(6, 2), index=(3, 4)),
        txn(4, r(5, 2), r(6, 1), index=(3, 4)),
    )
    result = existence(events, "list-append", anomalies=["G-single"])
    assert result.verdict is Verdict.VALID
