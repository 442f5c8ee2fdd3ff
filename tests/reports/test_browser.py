"""The page in a real browser: it draws, without an error, without the network, within its width."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.browser import CHROMIUM, browse
from tests.reports.conftest import Reported

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


def probed(page: str, script: str, tmp_path: Path) -> tuple[dict[str, str], list[str]]:
    """Run a script in a page; return what it left in the body's data attributes, and the console's lines."""
    file = tmp_path / "report.html"
    probe = f"""<script>addEventListener("load", () => {{
      const seen = document.body.dataset;
      {script}
    }});</script>"""
    file.write_text(page.replace("</body>", f"{probe}</body>"))
    browsed, console = browse(file, tmp_path / "profile")
    (body,) = browsed.all("body")
    return body.attributes, console


def test_shows_the_chosen_partition_without_an_error(reported: Reported, tmp_path: Path) -> None:
    script = """
      const chooser = document.getElementById("partition");
      chooser.value = "3";
      chooser.dispatchEvent(new Event("change"));
      seen.width = document.documentElement.scrollWidth;
      seen.shown = [...document.querySelectorAll("[data-partition]")]
        .filter((choice) => choice.offsetHeight > 0).map((choice) => choice.dataset.partition);
      seen.lines = document.querySelectorAll('[data-partition="3"] path.line').length;
    """
    left, console = probed(reported.page, script, tmp_path)
    assert console == []
    assert int(left["data-width"]) <= 1280
    assert left["data-shown"] == "3"
    assert int(left["data-lines"]) >= 5


def test_all_charts_have_the_same_time_axis(reported: Reported, tmp_path: Path) -> None:
    script = """
      const shown = [...document.querySelectorAll(".chart:not(.own-time) .canvas")]
        .map((each) => each.getBoundingClientRect()).filter((box) => box.width > 0);
      seen.lefts = [...new Set(shown.map((box) => box.left))].join();
      seen.widths = [...new Set(shown.map((box) => box.width))].join();
      seen.charts = shown.length;
    """
    left, _ = probed(reported.page, script, tmp_path)
    assert int(left["data-charts"]) > 8
    assert float(left["data-lefts"]) > 0
    assert float(left["data-widths"]) > 900


def test_no_label_of_an_axis_lies_on_another(reported: Reported, tmp_path: Path) -> None:
    script = """
      const boxes = (parent, inside) => [...parent.querySelectorAll(inside)]
        .map((each) => each.getBoundingClientRect()).filter((box) => box.width > 0);
      const overlap = (a, b) =>
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      let labels = 0, overlaps = 0;
      for (const panel of document.querySelectorAll(".panel")) {
        const all = [...boxes(panel, ".scale span"), ...boxes(panel, ".tick"), ...boxes(panel, ".note")];
        labels += all.length;
        all.forEach((box, n) => { overlaps += all.slice(n + 1).filter((other) => overlap(box, other)).length; });
      }
      seen.labels = labels;
      seen.overlaps = overlaps;
    """
    left, _ = probed(reported.page, script, tmp_path)
    assert int(left["data-labels"]) > 50
    assert left["data-overlaps"] == "0"


def test_the_slider_moves_the_line_and_states_what_every_broker_was(
    reported: Reported, tmp_path: Path
) -> None:
    script = """
      const slider = document.getElementById("time");
      const rows = () => [...document.querySelectorAll("#states-now tr")]
        .map((row) => [...row.cells].map((cell) => cell.textContent).join(" | ")).join(" / ");
      const move = (to) => { slider.value = to; slider.dispatchEvent(new Event("input")); };
      move(10);
      seen.early = rows();
      move(28);
      seen.late = rows();
      document.querySelector('[data-zoom="in"]').click();
      seen.range = [slider.min, slider.max].map(Number).join();
      seen.ticks = [...document.querySelector(".axis .canvas").children].map((each) => each.textContent);
    """
    left, console = probed(reported.page, script, tmp_path)
    assert console == []
    early, late = left["data-early"].split(" / "), left["data-late"].split(" / ")
    assert early[1].startswith("broker-2 | runs | epoch 2 | – | 4 of 4")
    assert early[0].endswith("| partition")
    assert late[2].startswith("broker-3 | runs | epoch 3 | 4: ")
    assert late[1].endswith("| – | stall-follower")
    low, high = map(float, left["data-range"].split(","))
    assert (low + high) / 2 == pytest.approx(28, abs=0.1)  # to a step of the slider
    assert high - low == pytest.approx(
        57 / 2, abs=0.1
    )  # half of the run, to the rounding of its end
    assert left["data-ticks"].split(",")[0] == "15"


def test_an_error_of_the_script_would_be_seen(reported: Reported, tmp_path: Path) -> None:
    _, console = probed(reported.page, "document.nothing.value = 1;", tmp_path)
    assert any("Uncaught" in line for line in console)
