"""Anomalies by Elle's names: which findings count, and that others do not."""

from __future__ import annotations

import re
from typing import Final

import pytest

from nemesis.checkers.cycles.asked_anomalies import ASKED, NOT_DETECTED, counted, model_of
from nemesis.checkers.cycles.models import ANOMALIES, CYCLE_EXISTS, CYCLES, Level, SessionOrder
from nemesis.checkers.framework.model import Verdict
from nemesis.running.checking_options import anomaly_names
from nemesis.support.errors import UsageError
from tests.nemesis.judging.foreign_judge import judged

# fmt: off
ELLE: Final = (
    "G0", "G0-process", "G0-realtime", "G1", "G1-process", "G1-realtime", "G1a", "G1b", "G1c", "G1c-process",
    "G1c-realtime", "G-single", "G-single-process", "G-single-realtime", "G-single-item", "G-single-item-process",
    "G-single-item-realtime", "G-nonadjacent", "G-nonadjacent-process", "G-nonadjacent-realtime",
    "G-nonadjacent-item", "G-nonadjacent-item-process", "G-nonadjacent-item-realtime", "G2", "G2-process",
    "G2-realtime", "G2-item", "G2-item-process", "G2-item-realtime", "GSI", "GSIa", "GSIb", "G-SI", "G-SIb", "G-MSR",
    "G-cursor", "G-monotonic", "G-update", "incompatible-order", "future-read", "dirty-update", "lost-update",
    "write-skew", "internal", "predicate-read-miss", "duplicate-elements", "cyclic-versions", "PL-1-cycle-exists",
    "PL-2-cycle-exists", "PL-2.99-cycle-exists", "PL-3-cycle-exists", "PL-SI-cycle-exists", "PL-SS-cycle-exists",
    "strong-session-PL-1-cycle-exists", "strong-session-PL-2-cycle-exists", "strong-PL-1-cycle-exists",
    "strong-PL-2-cycle-exists", "strong-session-snapshot-isolation-cycle-exists",
    "strong-snapshot-isolation-cycle-exists", "strong-session-serializable-cycle-exists",
)
# fmt: on
"""All anomalies of Elle (``elle.consistency-model/all-anomalies``)."""
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


@pytest.mark.parametrize("name", ELLE)
def test_each_anomaly_of_elle_is_known_or_refused_with_one_that_is(name: str) -> None:
    assert (name in ASKED) != (name in NOT_DETECTED)
    if name in NOT_DETECTED:
        with pytest.raises(UsageError, match=f"the anomaly {name} is not detected: ") as refused:
            anomaly_names(name, "list-append", other_options=())
        assert set(re.findall(r"[\w-]+", str(refused.value))) & {*ASKED, CYCLE_EXISTS}
    else:
        assert anomaly_names(name, "list-append", other_options=()) == [name]


def test_elle_has_no_other_name_for_what_it_does_not_detect() -> None:
    assert set(NOT_DETECTED) <= set(ELLE)
    assert {*ASKED} - set(ELLE) == {"garbage-read"}


def test_the_existence_of_a_cycle_is_each_cycle_that_the_model_forbids() -> None:
    assert ASKED["PL-1-cycle-exists"] == {"G0"}
    assert ASKED["PL-2-cycle-exists"] == {"G0", "G1c"}
    assert ASKED["PL-SI-cycle-exists"] == {"G0", "G1c", "G-single", "G-nonadjacent"}
    assert ASKED["strong-PL-1-cycle-exists"] == {"G0", "G0-process", "G0-realtime"}
    assert ASKED["PL-SS-cycle-exists"] == set(CYCLES)
    assert CYCLE_EXISTS in counted(["PL-3-cycle-exists"])


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
        (["PL-2-cycle-exists"], Verdict.VALID),
        (["PL-SI-cycle-exists"], Verdict.INVALID),
    ],
)
def test_only_what_is_asked_for_counts(asked: list[str], verdict: Verdict) -> None:
    assert judged(READ_SKEW, "list-append", anomalies=asked).verdict is verdict
