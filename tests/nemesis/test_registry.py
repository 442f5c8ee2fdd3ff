"""Registries: order, unknown names, names that two objects claim."""

from __future__ import annotations

import pytest

from nemesis.registry import DuplicateNameError, Registry, UnknownNameError, by_name
from nemesis.support.choices import choose
from nemesis.support.errors import UsageError


class Apple:
    name = "apple"


class GreenApple:
    name = "apple"


class Quince:
    name = "quince"


def test_entries_keep_the_order_of_registration() -> None:
    fruits = Registry[object]("fruit", by_name((Quince, Apple)))
    fruits.register("pear", int)
    assert list(fruits) == ["quince", "apple", "pear"]
    assert fruits["apple"] is Apple
    assert len(fruits) == 3


def test_an_unknown_name_lists_the_names_that_exist() -> None:
    fruits = Registry[object]("fruit", by_name((Quince, Apple)))
    with pytest.raises(UnknownNameError, match=r"unknown fruit 'plum': allowed are apple, quince$"):
        fruits.find("plum")
    with pytest.raises(KeyError):
        fruits["plum"]


def test_a_name_that_two_objects_claim_is_refused_and_both_are_named() -> None:
    fruits = Registry[object]("fruit", by_name((Apple,)))
    with pytest.raises(DuplicateNameError, match=r"test_registry\.Apple and .*\.GreenApple"):
        fruits.register("apple", GreenApple)
    assert fruits["apple"] is Apple


def test_objects_are_named_by_their_type() -> None:
    fruits = Registry[object]("fruit", [("apple", Apple())])
    with pytest.raises(DuplicateNameError, match=r"Apple and .*\.Quince"):
        fruits.register("apple", Quince())


def test_registering_the_same_object_again_changes_nothing() -> None:
    fruits = Registry[object]("fruit", by_name((Apple, Quince)))
    fruits.register("apple", Apple)
    assert list(fruits) == ["apple", "quince"]


def test_users_get_a_usage_error_for_an_unknown_name() -> None:
    fruits = Registry[object]("fruit", by_name((Apple,)))
    assert choose(fruits, "apple") is Apple
    with pytest.raises(UsageError, match="unknown fruit 'plum'"):
        choose(fruits, "plum")
