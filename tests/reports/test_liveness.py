"""What was missing: a stroke for each stretch at the height of its length, and a row for each kind of fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemesis import reports
from nemesis.checkers.framework.model import Distribution, Outcome, Result, Stretch, Verdict
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.reports import series
from nemesis.reports.charts.paths import WIDTH
from nemesis.reports.liveness import lasted, liveness, measured
from tests.reports import story
from tests.reports.conftest import Reported
from tests.reports.drawn import lines
from tests.reports.pages import Page

MS = 1_000_000


def stretch(label: str, start_s: float, stop_s: float, **more: Any) -> Stretch:
    about: dict[str, Any] = {"key": "orders-0", "fault": "none", "is_over": True, **more}
    return Stretch(label=label, start_ns=story.at(start_s), stop_ns=story.at(stop_s), **about)


def distribution(label: str, fault: str, *lasted_ms: float) -> Distribution:
    ascending = sorted(lasted_ms) or [0.0]
    return Distribution(
        label=label,
        fault=fault,
        count=len(lasted_ms),
        total_ms=sum(ascending),
        median_ms=ascending[(len(ascending) - 1) // 2],
        p90_ms=ascending[-1],
        max_ms=ascending[-1],
    )


STRETCHES = (
    stretch("without-controller", 15.0, 17.2, key="the cluster", fault="kill-controller"),
    stretch("without-leader", 15.0, 17.9, fault="kill-controller"),
    stretch("without-leader", 50.0, 57.0, key=f"{story.EVIL}-0", is_over=False),
)
DISTRIBUTIONS = (
    distribution("without-controller", "all", 2_200.0),
    distribution("without-controller", "kill-controller", 2_200.0),
    distribution("without-leader", "all", 2_900.0, 7_000.0, 0.5),
    distribution("without-leader", "none", 7_000.0, 0.5),
    distribution("without-leader", "kill-controller", 2_900.0),
    distribution("below-min-isr", "all"),
)


def outcome(
    distributions: tuple[Distribution, ...] = DISTRIBUTIONS,
    stretches: tuple[Stretch, ...] = STRETCHES,
) -> Outcome:
    measured = Result(
        property="liveness",
        verdict=Verdict.VALID,
        checked=3,
        numbers={"without_leader_longest_ms": 7_000.0},
        distributions=distributions,
        stretches=stretches,
    )
    return Outcome(
        verdict=Verdict.VALID, results=(measured,), events=10, engine="inline", seconds=0.1
    )


def page_of(reported: Reported, path: Path, result: Outcome) -> Page:
    run = RunDirectory(path / "run")
    run.path.mkdir(parents=True)
    run.write_info(reported.run.read_info())
    run.history.symlink_to(reported.run.history)
    reports.write(run, result)
    return Page.of(run.report_file.read_text())


def test_a_row_for_each_kind_of_fault_under_one_for_all(reported: Reported, tmp_path: Path) -> None:
    page = page_of(reported, tmp_path, outcome())
    (table,) = [
        element for element in page.all("table") if element.attributes.get("class") == "liveness"
    ]
    assert table.words.split("no controller")[1].startswith(" all 1 2.20 s 2.20 s 2.20 s 2.20 s")
    rows = [row.words for row in page.all("tr")]
    assert "no leader all 3 2.90 s 7.00 s 7.00 s 9.90 s" in rows
    assert "no fault in force 2 0.5 ms 7.00 s 7.00 s 7.00 s" in rows
    assert "ISR below min.insync.replicas all 0 – – – –" in rows
    assert "the 1 shortest are left out" in table_card(page)
    # What the table says is not said again among the numbers.
    assert not [row for row in rows if "without leader longest" in row]


def table_card(page: Page) -> str:
    return next(
        element.words
        for element in page.all("div")
        if element.words.startswith("Measured, and held against")
    )


def test_strokes_lie_where_and_as_high_as_they_last(reported: Reported) -> None:
    run = series.extract(series.read(open_history(reported.run.history)))
    shown = liveness(outcome(), run.origin_ns, run.duration_s)
    assert shown is not None
    assert shown.chart is not None
    assert [key.name for key in shown.chart.keys] == ["no controller", "no leader"]
    (panel,) = shown.chart.panels
    by_title = {layer.title: layer for layer in panel.layers}
    title = "the cluster: no controller, 2.20 s, during kill-controller"
    ((start, height), (stop, _)) = lines(by_title[title].path)[0]
    origin_s = (story.START - run.origin_ns) / 1e9
    seconds = [column / WIDTH * run.duration_s for column in (start, stop)]
    assert seconds == [
        pytest.approx(origin_s + 15.0, abs=0.01),
        pytest.approx(origin_s + 17.2, abs=0.01),
    ]
    longer = by_title[f"{story.EVIL}-0: no leader, 7.00 s, to the end"]
    assert lines(longer.path)[0][0][1] < height


def test_nothing_missing_is_said_and_nothing_measured_leaves_the_section_out(
    reported: Reported, tmp_path: Path
) -> None:
    nothing = (distribution("without-leader", "all"),)
    page = page_of(reported, tmp_path / "a", outcome(nothing, ()))
    assert "Nothing was ever missing." in table_card(page)
    page = page_of(reported, tmp_path / "b", outcome((), ()))
    assert "liveness" not in [element.attributes.get("id") for element in page.elements]


def test_each_kind_is_one_line_on_the_command_line() -> None:
    (result,) = outcome().results
    assert measured(result) == [
        "no controller: 1 time, median 2.20 s, longest 2.20 s",
        "no leader: 3 times, median 2.90 s, longest 7.00 s",
        "ISR below min.insync.replicas: never",
    ]


def test_lengths_are_said_in_the_unit_that_fits() -> None:
    assert [
        lasted(length_ms) for length_ms in (0.0, 0.5183, 41.2, 999.0, 2_041.3, 3_600_000.0)
    ] == [
        "0 ms",
        "0.518 ms",
        "41.2 ms",
        "999 ms",
        "2.04 s",
        "3,600.00 s",
    ]
