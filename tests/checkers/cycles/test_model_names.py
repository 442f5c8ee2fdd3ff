"""Other names of consistency models: those of Elle mean a model, or are refused with the nearest ones."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from nemesis.checkers.cycles.model_names import NOT_JUDGED, SAME, why_not
from nemesis.checkers.cycles.models import MODELS
from nemesis.running.checking_options import model_name
from nemesis.support.errors import UsageError
from tests.checkers.cycles.abstract_executions import allowed, is_faultless
from tests.checkers.cycles.adya_graphs import is_consistent_view
from tests.checkers.cycles.random_executions import random_execution

# fmt: off
ELLE: Final = (
    "1SR", "PL-1", "PL-2", "PL-2+", "PL-2.99", "PL-2L", "PL-3", "PL-3U", "PL-CS", "PL-FCV", "PL-MSR", "PL-SI",
    "PL-SS", "PRAM", "causal", "causal-cerone", "conflict-serializable", "consistent-view", "cursor-stability",
    "forward-consistent-view", "linearizable", "monotonic-atomic-view", "monotonic-reads",
    "monotonic-snapshot-read", "monotonic-view", "monotonic-writes", "parallel-snapshot-isolation", "prefix",
    "read-atomic", "read-committed", "read-uncommitted", "read-your-writes", "repeatable-read", "sequential",
    "serializable", "session-serializable", "snapshot-isolation", "strict-serializable", "strong-PL-1",
    "strong-PL-2", "strong-read-committed", "strong-read-uncommitted", "strong-serializable",
    "strong-session-PL-1", "strong-session-PL-2", "strong-session-read-committed",
    "strong-session-read-uncommitted", "strong-session-serializable", "strong-session-snapshot-isolation",
    "strong-snapshot-isolation", "update-atomic", "update-serializable", "view-serializable",
    "writes-follow-reads",
)
# fmt: on
"""All models of Elle."""


@pytest.mark.parametrize("name", ELLE)
def test_each_model_of_elle_has_a_meaning_or_is_refused(name: str) -> None:
    assert [name in MODELS, name in SAME, name in NOT_JUDGED].count(True) == 1
    if name in NOT_JUDGED:
        with pytest.raises(UsageError, match="is not judged: the nearest stronger model"):
            model_name(name, "list-append")
    else:
        assert model_name(name, "list-append") in MODELS


def test_neighbours_are_models_of_which_the_stronger_one_forbids_more() -> None:
    for item in NOT_JUDGED.values():
        stronger = MODELS[item.stronger]
        weaker = MODELS[item.weaker or "read-uncommitted"]
        assert weaker.level < stronger.level
        assert weaker.session_order <= stronger.session_order
    assert set(SAME.values()) <= set(MODELS)


def test_a_refusal_names_the_neighbours() -> None:
    assert why_not("cursor-stability") == (
        "the consistency model cursor-stability is not judged: the nearest stronger model that is judged is "
        "parallel-snapshot-isolation, and the nearest weaker one is read-committed"
    )
    assert why_not("PRAM") == (
        "the consistency model PRAM is not judged: the nearest stronger model that is judged is "
        "strong-session-causal, and no weaker one is"
    )
    assert why_not("serializable") is None


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown consistency model 'PL-4'.* allowed are .*PL-3"):
        model_name("PL-4", "list-append")
    with pytest.raises(UsageError, match=r"'pl-3' \(did you mean 'PL-3'\?\)"):
        model_name("pl-3", "list-append")
    with pytest.raises(UsageError, match=r"is for .*, and this is workload register"):
        model_name("PL-3", "register")
    with pytest.raises(UsageError, match=r"monotonic-reads is for list-append, rw-register"):
        model_name("monotonic-reads", "kafka")
    assert model_name(None, "register") is None


@pytest.mark.parametrize("lists", [True, False])
def test_pl_2_plus_is_parallel_snapshot_isolation(lists: bool) -> None:
    verdicts = []
    for seed in range(1000):
        txns = random_execution(Random(seed), lists=lists, most=4)
        if is_faultless(txns, lists=lists):
            verdicts.append(is_consistent_view(txns, lists=lists))
            levels = allowed(txns, lists=lists)
            assert levels["parallel-snapshot-isolation"] == verdicts[-1], seed
    assert min(verdicts.count(True), verdicts.count(False)) > 50
