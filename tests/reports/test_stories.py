"""What stands behind names: properties, planted bugs with their issues, what shrinking removed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis import reports
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.planted import planted_story
from nemesis.mutants import MUTANTS
from nemesis.reports.stories import ISSUES, removed_by_shrinking, with_issues
from tests.reports import story
from tests.reports.conftest import Reported
from tests.reports.pages import Page


def test_numbers_of_issues_become_links_and_nothing_else_becomes_markup() -> None:
    assert with_issues("<b> (KAFKA-6082)") == (
        f'&lt;b&gt; (<a href="{ISSUES}KAFKA-6082">KAFKA-6082</a>)'
    )


def test_each_property_of_a_report_links_to_what_it_means(reported: Reported) -> None:
    page = Page.of(reported.page)
    anchors = {element.attributes["id"] for element in page.elements if "id" in element.attributes}
    links = [link.attributes["href"] for link in page.all("a") if "href" in link.attributes]
    for result in reported.outcome.results:
        assert f"#property-{result.property}" in links
        assert result.property in page.by_id(f"property-{result.property}").words
    assert {link[1:] for link in links if link.startswith("#")} <= anchors


def test_what_shrinking_removed_is_counted() -> None:
    before = {"faults": 8, "operations": 2_000, "seconds": 60.0, "deviations": 0}
    after = {"faults": 1, "operations": 10, "seconds": 60.0, "deviations": 0}
    assert removed_by_shrinking({"before": before, "after": after}) == (
        "7 of 8 faults, 1,990 of 2,000 operations of clients"
    )
    assert removed_by_shrinking({"before": after, "after": after}) == ""
    assert removed_by_shrinking({}) == ""


@pytest.mark.parametrize("name", list(MUTANTS))
def test_each_planted_bug_has_a_story_of_sentences(name: str) -> None:
    narrated = planted_story(story.info(mutant=name))
    assert narrated.endswith((".", ")")), narrated
    assert len(narrated) > 40
    assert "Must be caught" not in narrated


def test_a_bug_from_a_file_or_of_another_version_has_no_story() -> None:
    assert planted_story(story.info(mutant=None)) == ""
    assert planted_story(story.info(mutant="of-another-version")) == ""
    own = msgspec.structs.replace(story.info(), mutant_file={"path": "bug.py"})
    assert planted_story(own) == ""


def test_the_story_stands_below_the_verdict_with_a_link(reported: Reported, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.write_info(reported.run.read_info())
    run.history.symlink_to(reported.run.history)
    reports.write(run, reported.outcome, story="Nothing is fenced (KAFKA-6082).")
    page = Page.of(run.report_file.read_text())
    assert "Planted bug: Nothing is fenced (KAFKA-6082)." in page.by_id("verdict").words
    assert f"{ISSUES}KAFKA-6082" in [link.attributes["href"] for link in page.all("a")]
