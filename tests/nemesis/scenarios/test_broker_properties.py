"""Broker properties on the command line: what they mean, and that a replay command means the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.scenarios.broker_properties import OPTION, arguments, parse
from nemesis.support.errors import UsageError


def test_a_value_is_what_it_looks_like() -> None:
    texts = ["a=-7", "b=true", "c=false", "d=2.6", "e=x=y", "f=", "g=1_0"]
    read = {"a": -7, "b": True, "c": False, "d": "2.6", "e": "x=y", "f": "", "g": "1_0"}
    assert parse(texts) == read


@pytest.mark.parametrize("text", ["a", "=7", ""])
def test_a_property_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match=f"--broker-property is '{text}': it has to be NAME=VALUE"):
        parse([text])


values = st.one_of(st.text(), st.integers().map(str), st.sampled_from(["true", "false", "True"]))


@given(st.dictionaries(st.text("abc.", min_size=1), values))
def test_the_arguments_mean_the_same_again(texts: dict[str, str]) -> None:
    properties = parse(f"{name}={value}" for name, value in texts.items())
    words = arguments(properties)
    assert set(words[::2]) <= {OPTION}
    assert parse(words[1::2]) == properties
