"""A node has one id and one name, and controllers that are no brokers have ids of their own."""

from __future__ import annotations

import pytest

from nemesis.support.node_names import id_of, is_controller, node_of


@pytest.mark.parametrize(
    ("node", "number"), [("broker-1", 1), ("broker-80", 80), ("controller-1", 1001)]
)
def test_a_name_and_an_id_belong_together(node: str, number: int) -> None:
    assert id_of(node) == number
    assert node_of(number) == node


def test_a_controller_is_told_by_its_name() -> None:
    assert is_controller("controller-2")
    assert not is_controller("broker-2")
