"""Which checks judge a history from elsewhere."""

from __future__ import annotations

import pytest

from checkers import CHECKERS, FOREIGN, foreign_properties, select_foreign
from checkers.log import ClientLog


def test_a_workload_names_its_properties_and_what_decides_them() -> None:
    (check,) = select_foreign("kafka")
    assert isinstance(check, ClientLog)
    assert set(foreign_properties("kafka")) == {*ClientLog.properties} - {
        "unseen",
        "earlier-life-read",
    }


def test_a_check_is_made_once_for_several_properties() -> None:
    assert len(select_foreign("kafka", ["duplicate", "lost-write"])) == 1


@pytest.mark.parametrize("name", ["unseen", "hw-bounded", "vibes"])
def test_a_property_of_another_workload_is_refused(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        select_foreign("kafka", [name])


def test_what_judges_foreign_histories_alone_is_not_asked_of_our_runs() -> None:
    only_foreign = {name for workload in FOREIGN for name in foreign_properties(workload)}
    assert not only_foreign - set(ClientLog.properties) & set(CHECKERS)
