"""EDN, read and written."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.foreign.edn import (
    EdnError,
    EdnSet,
    Keyword,
    Symbol,
    Tagged,
    canonical,
    dumps,
    loads,
    parse,
    same,
)
from nemesis.history.foreign.operations import NotAnOperation, operation_of

WORDS = st.from_regex(r"[a-z][a-z0-9.*!?_-]{0,8}", fullmatch=True).filter(
    lambda word: word not in {"nil", "true", "false"}
)
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    WORDS.map(Keyword),
    WORDS.map(Symbol),
)
KEYS = st.one_of(ATOMS, st.lists(ATOMS, max_size=3).map(tuple))
VALUES: st.SearchStrategy[Any] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(EdnSet),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(Tagged, WORDS, inner),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    text = dumps(value)
    assert "\n" not in text
    assert loads(text) == value
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("[1 -2 +3 4N]", (1, -2, 3, 4)),
        ("[1.5 2e3 3.25M]", (1.5, 2000.0, 3.25)),
        ("(a b/c 1/2 -)", ("a", "b/c", "1/2", "-")),
        ('{:type :ok, "k" #{1 2}}', {"type": "ok", "k": (1, 2)}),
        (r'"a\"b\\c\n\u0041"', 'a"b\\c\nA'),
        (r"[\a \newline \u0041]", ("a", "\n", "A")),
        ('#inst "2020-01-01"', Tagged("inst", "2020-01-01")),
        ("[1 #_ #_ 2 3 4]", (1, 4)),
        ("[1 ; two\n 3]", (1, 3)),
        ("{}", {}),
        ("[##Inf ##-Inf]", (math.inf, -math.inf)),
    ],
)
def test_notations(text: str, value: Any) -> None:
    assert loads(text) == value


def test_kinds_of_words_are_kept_apart() -> None:
    kinds = [type(loads(text)) for text in (":a", '"a"', "a")]
    assert kinds == [Keyword, str, Symbol]


def test_one_value_after_the_other() -> None:
    first, end = parse("{:a 1} {:b 2}")
    assert first == {"a": 1}
    assert parse("{:a 1} {:b 2}", end)[0] == {"b": 2}


@pytest.mark.parametrize("text", ["", " , ; nothing", "[1 2", "{:a", '"no end', "#tag", "#_ 1"])
def test_what_more_text_may_complete(text: str) -> None:
    with pytest.raises(EdnError) as raised:
        parse(text)
    assert raised.value.is_incomplete


@pytest.mark.parametrize("text", ["]", "[1}", "{:a}", "{{} 1}", "1 2", "#", "[: ]"])
def test_what_is_no_edn(text: str) -> None:
    with pytest.raises(EdnError) as raised:
        loads(text)
    assert not raised.value.is_incomplete


def test_what_is_nested_too_deep_is_refused() -> None:
    assert loads("[" * 100 + "]" * 100)
    with pytest.raises(EdnError, match="100 deep"):
        loads("[" * 100_000 + "]" * 100_000)


def test_a_number_of_any_length_is_no_error() -> None:
    assert isinstance(loads("9" * 100_000), Symbol)


def test_a_decimal_is_as_exact_as_it_was_written() -> None:
    exact = "1474573498123456789.000000000"
    first, second = loads(f"{exact}1M"), loads(f"{exact}2M")
    assert not same(first, second)
    assert same(loads(dumps(first)), first)
    assert canonical(loads(f"{exact}10M")) == canonical(first)
    assert loads("1.50M") == 1.5
    assert isinstance(loads("1.50M"), float)
    assert canonical(loads("-1e400")) == canonical(loads("-10E+399M"))
    assert loads("1e99999999999999999999") == float("inf")


def test_a_time_is_as_exact_as_it_was_written() -> None:
    form = {"type": "ok", "process": 0, "f": "read", "time": loads("1700000000123456789.0M")}
    assert operation_of(form, 1).time == 1700000000123456789
    with pytest.raises(NotAnOperation):
        operation_of({**form, "time": loads("1700000000123456789.1M")}, 1)
