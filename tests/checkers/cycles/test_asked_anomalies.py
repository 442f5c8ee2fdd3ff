"""Anomalies by Elle's names: which findings count, and that others do not."""

from __future__ import annotations

import pytest

from nemesis.checkers.cycles.asked_anomalies import ASKED, counted, model_of
from nemesis.checkers.cycles.models import ANOMALIES, CYCLE_EXISTS, Level, SessionOrder
from nemesis.checkers.framework.model import Verdict
from tests.nemesis.judging.foreign_judge import judged

READ_SKEW = (
    "{:type :invoke :process 0 :f :txn :value [[:append 1 1] [:append 2 1]]}"
    "{:type :invoke :process 1 :f :txn :value [[:r 1 nil] [:r 2 nil]]}"
    "{:type :ok :process 0 :f :txn :value [[:append 1 1] [:append 2 1]]}"
    "{:type :ok :process 1 :f :txn :value [[:r 1 []] [:r 2 [1]]]}"
)


def test_an_anomaly_counts_if_it_implies_the_one_that_is_asked_for() -> None:
    assert counted(["G0"]) == {"G0", CYCLE_EXISTS}
    assert ASKED["G1a"] == {"G1a", "incompatible-order", "dirty-update"}
    assert ASKED["G1c"] == {"G0", "G1c", "future-read"}
    assert ASKED["G1"] == ASKED["G1a"] | {"G1b"} | ASKED["G1c"]
    assert ASKED["G2"] == {"G-single", "G-nonadjacent", "G2-item", "lost-update"}
    assert ASKED["G-single-process"] == {"G-single", "G-single-process"}
    assert ASKED["G0-realtime"] == {"G0", "G0-process", "G0-realtime"}
    assert ASKED["G-single-item"] == ASKED["G-single"] == {"G-single"}
    assert all(name in names for name, names in ASKED.items() if name in ANOMALIES)


def test_the_weakest_model_forbids_what_is_asked_for_and_nothing_above() -> None:
    model = model_of(["G1"])
    assert (model.level, model.session_order) == (Level.G1, SessionOrder.NONE)
    assert model_of(["G2-item", "G0-realtime"]).session_order is SessionOrder.REALTIME
    for name in ASKED:
        assert all(model_of([name]).forbids(ANOMALIES[other]) for other in counted([name]))


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (["G2"], Verdict.INVALID),
        (["G-single-realtime"], Verdict.INVALID),
        (["G0", "G-single"], Verdict.INVALID),
        (["G1"], Verdict.VALID),
        (["lost-update"], Verdict.VALID),
    ],
)
def test_only_what_is_asked_for_counts(asked: list[str], verdict: Verdict) -> None:
    assert judged(READ_SKEW, "list-append", anomalies=asked).verdict is verdict
