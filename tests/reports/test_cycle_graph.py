"""Cycles of transactions as graphs: from the steps of real findings, and never from others."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.reports.cycle_graph import MAX_NODES, WIDTH_PX, cycle_graph, cycle_of


def finding(*steps: str) -> Finding:
    return Finding(
        property="G1c", verdict=Verdict.INVALID, key="key 1", sentence="No order.", steps=steps
    )


def ring(count: int) -> list[str]:
    return [f"T{n} comes before T{(n + 1) % count}: because." for n in range(count)]


def drawn(svg: str | None) -> ElementTree.Element:
    assert svg is not None
    return ElementTree.fromstring(svg)


@pytest.mark.parametrize("count", range(2, MAX_NODES + 1))
def test_each_transaction_is_a_node_and_each_step_an_arrow_with_its_number(count: int) -> None:
    steps = [*ring(count), "So T0 would have come before itself.", "In the file: lines 3, 4."]
    root = drawn(cycle_graph(finding(*steps)))
    texts = [text.text or "" for text in root.iter("text")]
    assert sorted(texts) == sorted(
        [*map(str, range(1, count + 1)), *(f"T{n}" for n in range(count))]
    )
    assert len(list(root.iter("circle"))) == count
    assert [path.get("class") for path in root.iter("path")] == ["edge", "head"] * count
    height = float(root.get("height", "0"))
    for text in root.iter("text"):
        assert 10 < float(text.get("x", "0")) < WIDTH_PX - 10
        assert 10 < float(text.get("y", "0")) < height - 5


def test_the_arrows_of_a_pair_do_not_lie_on_each_other() -> None:
    edges = [path.get("d") for path in drawn(cycle_graph(finding(*ring(2)))).iter("path")]
    assert len(set(edges)) == 4


@pytest.mark.parametrize(
    "steps",
    [
        [],
        ["T1 comes before T2: because."],
        ["T1 comes before T2: because.", "T2 comes before T3: because."],
        ["T1 comes before T2: because.", "T3 comes before T1: because."],
        [*ring(2), *ring(2)],
        ["T1 comes before T1: because."],
        ring(MAX_NODES + 1),
    ],
)
def test_what_is_not_a_cycle_that_fits_is_not_drawn(steps: list[str]) -> None:
    assert cycle_graph(finding(*steps)) is None


def test_the_order_of_a_cycle_is_that_of_its_steps() -> None:
    steps = ["T7 comes before T2: a.", "T2 comes before T5: b.", "T5 comes before T7: c."]
    assert cycle_of(steps) == ["T7", "T2", "T5"]


def test_names_are_text() -> None:
    steps = ["<b> comes before T2: a.", "T2 comes before <b>: b."]
    texts = [text.text for text in drawn(cycle_graph(finding(*steps))).iter("text")]
    assert "<b>" in texts
