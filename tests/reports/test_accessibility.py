"""The page passes axe-core's rules for contrast, names and keyboard: light and dark, wide and on a phone.

Every part that a reader can open is open. What axe-core cannot decide is texts over drawings; their colours are
checked here by the formula of WCAG.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nemesis import reports
from nemesis.history.run_directory import RunDirectory
from nemesis.reports.charts.panel import PALETTE
from nemesis.reports.figures import OUTCOME_COLOURS
from nemesis.reports.marks import FAULT_COLOURS
from tests.reports import axe
from tests.reports.browser import CHROMIUM, Window, browse
from tests.reports.conftest import Reported

WITH_A_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
READABLE = 4.5
"""The contrast that WCAG asks of text at level AA."""
RUN = """addEventListener("load", async () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  const outcome = await axe.run(document, { resultTypes: ["violations"] });
  const seen = document.body.dataset;
  seen.rules = outcome.passes.map((rule) => rule.id).join();
  seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  seen.violations = JSON.stringify(outcome.violations.map((rule) =>
    [rule.id, rule.nodes.slice(0, 3).map((node) => [node.html.slice(0, 200), node.failureSummary])]));
});"""


@pytest.fixture(scope="session")
def axe_script(tmp_path_factory: pytest.TempPathFactory) -> str:
    try:
        return axe.fetch(tmp_path_factory.mktemp("axe"))
    except axe.UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def page(reported: Reported, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a broken run with the story of its bug, and of what shrinking removed."""
    run = RunDirectory(tmp_path_factory.mktemp("store") / "run")
    run.path.mkdir()
    info = reported.run.read_info()
    info.shrunk = {
        "run": "store/run",
        "property": "hw-bounded",
        "key": "orders-0",
        "sentence": "faults 7 to 2",
        "runs": 40,
        "stopped_by": None,
        "before": {"faults": 7},
        "after": {"faults": 2},
    }
    run.write_info(info)
    run.history.symlink_to(reported.run.history)
    reports.write(run, reported.outcome, story="Nothing is fenced (KAFKA-6082).")
    return run.report_file.read_text()


def audited(page: str, script: str, directory: Path, window: Window) -> dict[str, str]:
    """Run axe-core in a page; return what it left in the body's data attributes."""
    file = directory / "report.html"
    inert = script.replace("</script>", "<\\/script>")
    probe = f"<script>{inert}</script><script>{RUN}</script>"
    file.write_text(page.replace("</body>", f"{probe}</body>"))
    browsed, _ = browse(file, directory / "profile", window)
    (body,) = browsed.all("body")
    return body.attributes


@pytest.mark.e2e
@WITH_A_BROWSER
@pytest.mark.parametrize(
    ("width_px", "is_dark"), [(1280, False), (1280, True), (390, False), (390, True)]
)
def test_the_page_passes_every_rule(
    page: str, axe_script: str, tmp_path: Path, width_px: int, is_dark: bool
) -> None:
    left = audited(page, axe_script, tmp_path, Window(width_px, is_dark=is_dark))
    assert json.loads(left["data-violations"]) == []
    assert left["data-dark"] == str(is_dark).lower()
    rules = left["data-rules"].split(",")
    assert {"color-contrast", "link-name", "button-name", "label", "svg-img-alt"} <= set(rules)


@pytest.mark.e2e
@WITH_A_BROWSER
@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("--soft: #5c6675", "--soft: #b9c0ca", "color-contrast"),
        ('<label class="scale" for="time">', "<label>", "label"),
        (
            'class="diagram" role="img" aria-label=',
            'class="diagram" role="img" lang=',
            "svg-img-alt",
        ),
    ],
)
def test_a_broken_rule_is_reported(
    page: str, axe_script: str, tmp_path: Path, old: str, new: str, rule: str
) -> None:
    assert old in page
    left = audited(page.replace(old, new), axe_script, tmp_path, Window())
    assert rule in [name for name, _ in json.loads(left["data-violations"])]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_over_drawings_can_be_read(page: str, scheme: int) -> None:
    shades = colours(page)[scheme]
    for text in ("ink", "soft", "invalid", "unknown"):
        for share in (0.0, 0.13):  # the row of a proof in a diagram
            ground = mixed(shades["invalid"], shades["card"], share)
            assert contrast(shades[text], ground) >= READABLE, (text, share)
    for bar in {*PALETTE, *FAULT_COLOURS, *OUTCOME_COLOURS.values(), shades["accent"]}:
        assert contrast(shades["ink"], mixed(bar, shades["card"], 0.45)) >= READABLE, bar


def test_contrast_is_that_of_the_formula() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert mixed("#ff0000", "#0000ff", 0.5) == "#800080"


def colours(page: str) -> list[dict[str, str]]:
    """The colours of the page by name: of the light scheme, and of the dark one."""
    blocks = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks)
    return [light, dark]


def contrast(first: str, second: str) -> float:
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def luminance(shade: str) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in channels(shade))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def channels(shade: str) -> list[int]:
    return [int(shade[start : start + 2], 16) for start in (1, 3, 5)]


def mixed(shade: str, ground: str, share: float) -> str:
    """The shade with this share over the ground."""
    pairs = zip(channels(shade), channels(ground), strict=True)
    return "#" + "".join(f"{round(top * share + below * (1 - share)):02x}" for top, below in pairs)
