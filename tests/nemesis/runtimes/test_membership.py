"""Brokers are numbered in the order in which they join, and a number is given once."""

from __future__ import annotations

import pytest

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.membership import Membership
from nemesis.support.errors import UsageError


def test_one_that_has_left_is_remembered_and_its_name_is_not_given_again() -> None:
    members = Membership(2, limit=9)
    assert members.next == "broker-3"
    members.admit("broker-3")
    members.retire("broker-3", is_alive=False)
    assert members.present == ["broker-1", "broker-2"]
    assert members.ever == ["broker-1", "broker-2", "broker-3"]
    assert members.next == "broker-4"


@pytest.mark.parametrize("name", ["broker-1", "broker-4"])
def test_only_the_next_one_joins(name: str) -> None:
    members = Membership(2, limit=9)
    with pytest.raises(RuntimeFailure, match=f"{name} cannot join: the next broker is broker-3"):
        members.admit(name)


def test_when_all_names_are_given_nobody_joins() -> None:
    members = Membership(2, limit=2)
    assert members.next is None
    with pytest.raises(RuntimeFailure):
        members.admit("broker-3")


def test_whoever_runs_or_has_left_cannot_leave() -> None:
    members = Membership(2, limit=9)
    with pytest.raises(RuntimeFailure, match="it is running"):
        members.retire("broker-1", is_alive=True)
    members.retire("broker-1", is_alive=False)
    with pytest.raises(RuntimeFailure, match="it is no member"):
        members.retire("broker-1", is_alive=False)


def test_a_cluster_begins_with_a_broker_at_least() -> None:
    with pytest.raises(UsageError, match="0 brokers are not possible"):
        Membership(0, limit=9)
