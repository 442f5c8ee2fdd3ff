"""Which checks judge a history from elsewhere."""

from __future__ import annotations

import pytest

from nemesis.checkers import CHECKERS, FOREIGN, foreign_properties, select, select_foreign
from nemesis.checkers.cycles.check import Transactional
from nemesis.checkers.cycles.log_transactions import LogTransactions
from nemesis.checkers.foreign import named_model
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.log.offset_log import OffsetLog


def test_a_workload_names_its_properties_and_what_decides_them() -> None:
    log, transactions = select_foreign("kafka")
    assert isinstance(log, OffsetLog)
    assert isinstance(transactions, LogTransactions)
    assert foreign_properties("kafka") == (
        *property_names(OffsetLog),
        *property_names(LogTransactions),
    )


def test_a_check_is_made_once_for_several_properties() -> None:
    assert len(select_foreign("kafka", ["duplicate", "lost-write"])) == 1


@pytest.mark.parametrize("name", ["withheld", "hw-bounded", "vibes"])
def test_a_property_of_another_workload_is_refused(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        select_foreign("kafka", [name])


def test_no_property_of_a_run_of_ours_is_decided_by_a_foreign_check() -> None:
    foreign = {check for checks in FOREIGN.values() for check in checks}
    assert not foreign & {type(check) for check in select(CHECKERS)}


def test_transactions_are_held_against_the_model_that_is_named() -> None:
    (default,) = select_foreign("list-append")
    (weaker,) = select_foreign("rw-register", ["G0"], "serializable")
    assert isinstance(default, Transactional)
    assert isinstance(weaker, Transactional)
    (_, logs) = select_foreign("kafka", None, "read-uncommitted")
    assert isinstance(logs, LogTransactions)
    assert logs.model.name == "read-uncommitted"
    assert (default.model.name, weaker.model.name) == ("strict-serializable", "serializable")
    with pytest.raises(KeyError, match="eventual"):
        select_foreign("list-append", None, "eventual")


def test_a_verdict_names_the_model_of_transactions() -> None:
    for workload in ("list-append", "rw-register"):
        assert named_model(workload, None) == "strict-serializable"
        assert named_model(workload, "causal") == "causal"
    assert named_model("register", None) is None
    assert named_model(None, None) is None
