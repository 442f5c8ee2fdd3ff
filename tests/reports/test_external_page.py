"""The page of another system's history: its cycle as a graph, and its clients in lanes where times are known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.judging.foreign import bring_in
from nemesis.judging.judge import judge
from tests.reports.pages import Page

HISTORY = """
{:type :invoke, :f :txn, :value [[:append x 1] [:r y nil]], :process 0, :time 1000000}
{:type :invoke, :f :txn, :value [[:append y 7] [:r x nil]], :process 1, :time 2000000}
{:type :ok, :f :txn, :value [[:append x 1] [:r y [7]]], :process 0, :time 5000000}
{:type :ok, :f :txn, :value [[:append y 7] [:r x [1]]], :process 1, :time 6000000}
{:type :invoke, :f :txn, :value [[:append x 2]], :process 2, :time 7000000}
"""


def page_of(text: str, tmp_path: Path) -> Page:
    file = tmp_path / "history.edn"
    file.write_text(text)
    run = bring_in(file, "list-append", tmp_path / "store", ["nemesis", "check"])
    assert judge(run, engine="inline").verdict is Verdict.INVALID
    return Page.of(run.report_file.read_text())


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(HISTORY, tmp_path_factory.mktemp("timed"))


def of_class(page: Page, name: str) -> list[str]:
    return [
        element.words
        for element in page.elements
        if name in element.attributes.get("class", "").split()
    ]


def test_a_cycle_is_drawn_as_a_graph(timed: Page) -> None:
    (graph,) = of_class(timed, "cycle")
    assert graph.startswith("12")  # the numbers of the arrows
    assert sorted(re.findall(r"T\d", graph)) == ["T0", "T1"]


def test_clients_stand_in_lanes_and_the_open_operation_is_among_them(timed: Page) -> None:
    (lanes,) = of_class(timed, "own-time")
    assert lanes.startswith("0 txn")
    bars = [
        element.attributes
        for element in timed.elements
        if "call" in element.attributes.get("class", "")
    ]
    assert len([bar for bar in bars if "proof" in bar["class"]]) == 2
    assert [bar["title"].endswith("no return") for bar in bars if "title" in bar] == [
        False,
        False,
        True,
    ]


def test_without_times_the_cycle_is_drawn_and_lanes_are_not(tmp_path: Path) -> None:
    page = page_of(re.sub(r", :time \d+", "", HISTORY), tmp_path)
    assert len(of_class(page, "cycle")) == 1
    assert of_class(page, "own-time") == []


def test_a_short_history_has_a_small_page(tmp_path: Path) -> None:
    page_of(HISTORY, tmp_path)
    (report,) = (tmp_path / "store").glob("list-append/2*/report.html")
    assert report.stat().st_size < 300_000
