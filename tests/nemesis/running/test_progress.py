"""Progress: a line that changes on a terminal; without one plain lines, few of them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from nemesis.running.progress import Progress, Status, line
from nemesis.searching.explore.display import ExplorationProgress
from nemesis.searching.explore.tally import Tally
from nemesis.support import live_display
from nemesis.support.live_display import LiveDisplay


def test_a_line_says_phase_rate_controller_and_faults() -> None:
    status = Status(
        phase="faults",
        elapsed_s=12.3,
        operations=4200,
        operations_per_s=351.4,
        controller="2",
        controller_epoch=3,
        faults=["pause broker-1"],
    )
    assert line(status) == (
        " 12.3 s  faults: 4200 operations, 351/s; controller 2 (epoch 3); in force: pause broker-1"
    )


def test_a_pipe_gets_a_line_for_each_phase_and_not_for_each_look() -> None:
    written = io.StringIO()
    with Progress(Console(file=written)) as progress:
        for phase in ("warm-up", "warm-up", "warm-up", "faults", "faults"):
            progress.show(Status(phase=phase))
    assert [text.split()[2] for text in written.getvalue().splitlines()] == ["warm-up:", "faults:"]


def test_a_terminal_gets_the_line_that_changes() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True)
    with LiveDisplay(console, "at first"):
        pass
    with LiveDisplay(console) as display:
        display.update("at last", "plain", is_news=True)
    assert "at first" in written.getvalue()
    assert "at last" in written.getvalue()
    assert "plain" not in written.getvalue()


def test_what_is_no_news_is_said_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(live_display, "monotonic", lambda: now_s)
    written = io.StringIO()
    with LiveDisplay(Console(file=written)) as display:
        for step in range(45):
            now_s = 100.0 + step
            display.update("", f"line {step}")
    assert written.getvalue().split("\n") == ["line 11", "line 22", "line 33", "line 44", ""]


def test_an_exploration_on_a_terminal_says_how_many_seeds_are_over() -> None:
    written = io.StringIO()
    with ExplorationProgress(Console(file=written, force_terminal=True, width=120)) as progress:
        progress.show(Tally(asked=7))
    assert "0/7 seeds" in written.getvalue()
    assert "no findings" in written.getvalue()
