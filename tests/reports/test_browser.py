"""The page in a real browser: it draws, without an error, without the network, within its width."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.reports.conftest import Reported
from tests.reports.pages import Page

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
PLOTS = (
    *("timeline", "liveness", "controllers", "leader-epochs"),
    *("operations-0", "operations-1", "partition"),
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


def browse(file: Path, profile: Path) -> tuple[Page, list[str]]:
    """Open a page, let its scripts finish; return the resulting DOM and the console's lines."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--window-size=1280,2000",
        "--virtual-time-budget=20000",
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Page.of(done.stdout), console


def test_draws_every_plot_without_an_error(reported: Reported, tmp_path: Path) -> None:
    probe = """<script>addEventListener("load", () => setTimeout(() => {
      const chooser = document.getElementById("partition");
      chooser.value = "3";
      chooser.dispatchEvent(new Event("change"));
      document.body.dataset.width = document.documentElement.scrollWidth;
    }, 3000));</script>"""
    file = tmp_path / "report.html"
    file.write_text(reported.page.replace("</body>", f"{probe}</body>"))
    page, console = browse(file, tmp_path / "profile")
    assert console == []
    (body,) = page.all("body")
    assert body.attributes["data-drawn"] == str(len(PLOTS))
    assert int(body.attributes["data-width"]) <= 1280
    drawings = [
        element.path
        for element in page.all("svg")
        if "main-svg" in element.attributes.get("class", "")
    ]
    for name in PLOTS:
        assert any(f"plot-{name}" in path for path in drawings), name
    lines = [
        element.path
        for element in page.all("path")
        if "js-line" in element.attributes.get("class", "")
    ]
    assert len([path for path in lines if "plot-partition" in path]) >= 8


def test_an_error_of_the_script_would_be_seen(reported: Reported, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(reported.page.replace('"plot-" + name', '"no-plot-" + name'))
    page, console = browse(file, tmp_path / "profile")
    assert any("Uncaught" in line for line in console)
    (body,) = page.all("body")
    assert "data-drawn" not in body.attributes
