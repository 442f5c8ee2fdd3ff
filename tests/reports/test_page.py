"""The page: what it says, that it says it safely, and that it needs nothing from outside."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import msgspec
import pytest

from nemesis import reports
from nemesis.checkers import CHECKERS
from nemesis.checkers.foreign import FOREIGN, foreign_properties
from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.checkers.framework.nouns import noun_for
from nemesis.history.errors import MissingHistoryError
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.reports import series, wording
from nemesis.reports.charts.paths import WIDTH
from tests.reports import story
from tests.reports.conftest import Reported
from tests.reports.drawn import lines
from tests.reports.pages import Page

FETCHING = ("src", "srcset", "href", "action", "data", "poster", "background", "formaction")


@pytest.fixture(scope="session")
def page(reported: Reported) -> Page:
    return Page.of(reported.page)


def outcome(*results: Result, problems: tuple[str, ...] = ()) -> Outcome:
    verdicts = [result.verdict for result in results]
    worst_first = [Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID]
    worst = next(verdict for verdict in worst_first if verdict in verdicts)
    return Outcome(
        verdict=worst, results=results, events=10, engine="inline", seconds=0.1, problems=problems
    )


def rewritten(reported: Reported, tmp_path: Path, result: Outcome) -> Page:
    """The page of the story's history with another outcome."""
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir(parents=True)
    run.write_info(reported.run.read_info())
    run.history.symlink_to(reported.run.history)
    reports.write(run, result)
    return Page.of(run.report_file.read_text())


def test_planned_faults_that_had_no_time_left_are_listed(
    reported: Reported, tmp_path: Path
) -> None:
    assert "not begun" not in reported.page
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    info = reported.run.read_info()
    late = {"at_s": 20.5, "fault": "rolling-restart"}
    run.write_info(msgspec.structs.replace(info, plan=[*(info.plan or []), late]))
    run.history.symlink_to(reported.run.history)
    reports.write(run, reported.outcome)
    assert (
        "Planned and not begun, because no time was left: rolling-restart at 20.5 s."
        in run.report_file.read_text()
    )


@pytest.mark.parametrize(
    ("target", "options", "stated"),
    [
        ("kafka", {"kafka-version": "3.9.1", "broker-logs": "judged"}, "kafka 3.9.1, broker-logs"),
        ("kafka", {"kafka-version": "4.1.1", "controllers": "3"}, "kafka 4.1.1, controllers 3"),
        (
            "mixed",
            {"reference": "1", "kafka-version": "3.9.1"},
            "mixed, reference 1, kafka 3.9.1",
        ),
        ("reference", {}, "reference"),
    ],
)
def test_the_target_is_stated_with_what_was_chosen_of_it(
    reported: Reported, tmp_path: Path, target: str, options: dict[str, str], stated: str
) -> None:
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    info = msgspec.structs.replace(
        reported.run.read_info(), target=target, config={"target_options": options}
    )
    run.write_info(info)
    run.history.symlink_to(reported.run.history)
    reports.write(run, reported.outcome)
    assert f"{stated} on " in run.report_file.read_text()


def test_needs_nothing_from_outside(page: Page) -> None:
    for element in page.elements:
        for name in FETCHING:
            is_link = element.tag == "a" and name == "href"
            allowed = ("#", "https://") if is_link else ("#",)
            assert element.attributes.get(name, "#").startswith(allowed), element
        assert element.tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
    (style,) = page.all("style")
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_forbids_the_browser_every_request(page: Page) -> None:
    (policy,) = [
        meta.attributes["content"]
        for meta in page.all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_the_page_of_a_normal_run_stays_below_two_megabytes(reported: Reported) -> None:
    assert len(reported.page.encode()) < 2_000_000


def test_runs_no_name_as_script(reported: Reported, page: Page) -> None:
    assert story.EVIL not in reported.page
    assert len(page.all("script")) == 2
    assert f"{story.EVIL}-0" in [option.text for option in page.all("option")]
    assert story.EVIL in page.by_id("finding-1").text


def test_shows_every_finding_with_its_proof_its_faults_and_how_to_replay_it(
    reported: Reported, page: Page
) -> None:
    findings = [finding for result in reported.outcome.results for finding in result.findings]
    cards = [
        element
        for element in page.all("article")
        if "finding" in element.attributes.get("class", "")
    ]
    assert len(findings) == len(cards) > 3
    for finding in findings:
        (card,) = [
            card
            for card in cards
            if finding.sentence in card.words
            and f"{finding.property} · {finding.key}" in card.words
        ]
        for event in finding.events:
            assert event["process"] in card.words
            assert event["kind"] in card.words
            assert f"{(event['time'] - story.START) / 1e9:,.6f}" in card.words
        for fault in finding.faults:
            assert fault in card.words
        assert story.info().replay in card.words
    assert any(finding.faults for finding in findings)


def test_spells_the_contradiction_out_as_a_numbered_list(
    reported: Reported, tmp_path: Path
) -> None:
    steps = ("Broker 1 said <b>so</b>.", "Broker 2 said otherwise.", "Both cannot be.")
    finding = Finding(
        property="hw-grows",
        verdict=Verdict.INVALID,
        key="orders-0",
        sentence="It fell.",
        steps=steps,
    )
    result = Result(
        property="hw-grows",
        verdict=Verdict.INVALID,
        checked=1,
        findings=(finding,),
        finding_count=1,
    )
    page = rewritten(reported, tmp_path, outcome(result))
    assert [item.words for item in page.all("li") if "finding-1" in item.path] == list(steps)


def test_leads_from_the_verdict_to_what_is_broken_first(page: Page) -> None:
    verdict = page.by_id("verdict")
    assert verdict.words.startswith("invalid 1 of 5 properties broken over")
    assert [link.attributes["href"] for link in page.all("a") if "verdict" in link.path] == [
        "#finding-1"
    ]
    assert page.by_id("finding-1").attributes["class"] == "card finding invalid"
    anchors = [element.attributes.get("id") for element in page.elements]
    assert anchors.index("verdict") < anchors.index("finding-1") < anchors.index("properties")


def test_says_of_each_property_what_was_checked(reported: Reported, page: Page) -> None:
    rows = [row.words for row in page.all("tr")]
    for result in reported.outcome.results:
        start = f"{result.property} {result.verdict} {wording.promise(result.property)}"
        checked = f"{result.checked:,} {noun_for(result.checked, result.unit)}"
        assert any(row.startswith(start) and checked in row for row in rows), start


def test_shows_what_was_measured_and_what_was_run(page: Page) -> None:
    words = " ".join(row.words for row in page.all("tr"))
    for said in (
        "convergence leaders 1,830 ms",
        "seed 7",
        "target reference",
        "planted bug hw-follows-leader",
        "zookeeper 3.9.5",
    ):
        assert said in words
    configuration = " ".join(pre.text for pre in page.all("pre"))
    assert "min.insync.replicas: 2" in configuration
    assert "fault: kill-controller" in configuration


def test_names_every_fault(page: Page) -> None:
    rows = [row.words for row in page.all("tr")]
    for number, (name, start, stop, targets) in enumerate(story.FAULTS):
        times = f"{start - 0.1:.3f} {start:.3f} {stop:.3f} {stop - start + 0.1:.3f}"
        said = f"{number} {name} {', '.join(targets)} {times}"
        assert any(row.startswith(said) for row in rows), said
    assert any("skipped no such follower" in row for row in rows)


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (
            '{"held_bytes": 10, "probes_after": {"a to b": false, "a to c": true}}',
            "bytes stopped 10; probes after: 1 of 2",
        ),
        ('{"broker-1": {"dead": true, "pid": 7}}', "broker-1: dead, pid 7"),
        ('{"restarted": {"broker-1": {"answered": false}}}', "restarted: broker-1 not answered"),
        (
            '{"was_outside_isr_of": [], "sessions": {"broker-1": 72}}',
            "was outside isr of: none; sessions: broker-1 72",
        ),
        ("not JSON", "not JSON"),
    ],
)
def test_what_was_measured_is_said_in_words(detail: str, words: str) -> None:
    assert wording.measured(detail) == words


def test_the_replicas_plot_opens_where_the_first_finding_is_else_at_the_busiest(
    reported: Reported, page: Page, tmp_path: Path
) -> None:
    def opens_at(read: Page) -> str:
        [chosen] = [option for option in read.all("option") if "selected" in option.attributes]
        return chosen.words

    last = page.all("option")[-1].words
    broken = Finding(property="hw-grows", verdict=Verdict.INVALID, key=last, sentence="It fell.")
    result = Result(property="hw-grows", verdict=Verdict.INVALID, checked=1, findings=(broken,))
    assert opens_at(rewritten(reported, tmp_path / "broken", outcome(result))) == last
    calm = Result(property="hw-grows", verdict=Verdict.VALID, checked=1)
    run = series.extract(series.read(open_history(reported.run.history)))
    elections = {
        partition.name: len(partition.leader_epochs) + len(partition.isr)
        for partition in run.partitions
    }
    busiest = opens_at(rewritten(reported, tmp_path / "calm", outcome(calm)))
    assert elections[busiest] == max(elections.values())


def test_every_chart_is_drawn(page: Page) -> None:
    for name in ("liveness", "controllers", "leader-epochs", "operations-0", "operations-1"):
        drawn = [element for element in page.all("path") if f"plot-{name}" in element.path]
        assert any(element.attributes.get("d", "").startswith("M") for element in drawn), name
    choices = [element for element in page.all("div") if "data-partition" in element.attributes]
    assert len(choices) == 4
    assert len([choice for choice in choices if "hidden" not in choice.attributes]) == 1


def test_faults_shade_every_panel_from_their_beginnings(page: Page) -> None:
    """An effect that a band begins after would look like its cause."""
    bands = [element for element in page.all("path") if element.attributes.get("class") == "behind"]
    duration_s = 57.0
    begins = [int(band.attributes["d"][1:].split()[0]) / WIDTH * duration_s for band in bands]
    assert begins == [pytest.approx(start - 0.1, abs=0.01) for _, start, _, _ in story.FAULTS]
    panels = [element for element in page.all("svg") if "preserveaspectratio" in element.attributes]
    behind = [element for element in page.all("use") if element.attributes["href"] == "#behind"]
    before = [element for element in page.all("use") if element.attributes["href"] == "#before"]
    assert len(panels) == len(before) > len(behind) > 5


def test_says_what_keeps_a_run_from_being_judged(reported: Reported, tmp_path: Path) -> None:
    nothing = Result(property="hw-grows", verdict=Verdict.UNKNOWN, checked=0)
    page = rewritten(reported, tmp_path, outcome(nothing, problems=("broker-2 <is> missing",)))
    verdict = page.by_id("verdict").words
    assert "1 of 1 properties undecided over 10 events: hw-grows" in verdict
    assert "broker-2 <is> missing" in verdict
    assert any("Nothing was observed" in row.words for row in page.all("tr"))


def test_what_is_broken_comes_before_what_is_allowed(reported: Reported, tmp_path: Path) -> None:
    def result(name: str, verdict: Verdict) -> Result:
        about = Finding(property=name, verdict=verdict, key="t-0", sentence=f"{name} it is.")
        return Result(property=name, verdict=verdict, checked=1, findings=(about,), finding_count=1)

    allowed = result("duplicate", Verdict.VALID)
    undecided = result("unseen", Verdict.UNKNOWN)
    broken = result("lost-write", Verdict.INVALID)
    page = rewritten(reported, tmp_path, outcome(allowed, undecided, broken))
    sentences = [page.by_id(f"finding-{n}").words for n in (1, 2, 3)]
    assert [
        "lost-write" in sentences[0],
        "unseen" in sentences[1],
        "duplicate" in sentences[2],
    ] == [
        True,
        True,
        True,
    ]


def test_a_run_without_traces_says_so_instead_of_drawing(tmp_path: Path) -> None:
    info = story.info(target="kafka", phases=["warm-up"], durations_s={"start": 2.51, "warm-up": 4})
    run = RunDirectory.create(tmp_path, info)
    run.raw_file("harness").write_bytes(
        b'{"time":1,"process":"harness","kind":"phase","phase":"warm-up"}\n'
    )
    ingest(run)
    held = Result(property="unseen", verdict=Verdict.VALID, checked=1)
    reports.write(run, outcome(held))
    page = Page.of(run.report_file.read_text())
    words = " ".join(element.words for element in page.all("p"))
    assert "No controller traced its election." in words
    assert "No broker traced a partition." in words
    cells = [element.words for element in page.all("td")]
    assert "start 2.5 s, warm-up 4.0 s" in cells
    assert "The run was interrupted in phase warm-up." in page.by_id("verdict").words
    assert not [element for element in page.elements if "plot-controllers" in element.path]


COMPOSE = """
services:
  broker-1: {container_name: nemesis-7-broker-1, networks: {cluster: {ipv4_address: 198.18.0.21}}}
"""


@pytest.mark.parametrize(("text", "is_told"), [(COMPOSE, True), ("services: [}", False)])
def test_a_run_in_containers_names_them(tmp_path: Path, text: str, is_told: bool) -> None:
    run = RunDirectory.create(tmp_path, story.info(runtime="docker"))
    (run.path / "compose.yaml").write_text(text)
    run.raw_file("harness").write_bytes(
        b'{"time":1,"process":"harness","kind":"phase","phase":"start"}\n'
    )
    ingest(run)
    reports.write(run, outcome(Result(property="unseen", verdict=Verdict.VALID, checked=1)))
    cells = [element.words for element in Page.of(run.report_file.read_text()).all("td")]
    named = ["broker-1", "nemesis-7-broker-1", "198.18.0.21"]
    assert all(name in cells for name in named) is is_told


def test_results_read_back_as_they_were(reported: Reported) -> None:
    content = reported.run.results_file.read_bytes()
    assert msgspec.json.decode(content, type=Outcome) == reported.outcome
    both = msgspec.json.decode(content, type=reports.Results)
    assert both.run == reported.run.read_info()


def test_writes_nothing_without_a_history(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, story.info())
    with pytest.raises(MissingHistoryError, match="contains no history"):
        reports.write(run, outcome(Result(property="unseen", verdict=Verdict.VALID, checked=1)))
    assert not run.results_file.exists()
    assert not run.report_file.exists()


def test_marks_when_a_property_was_first_proved_broken(reported: Reported, page: Page) -> None:
    findings = [
        finding
        for result in reported.outcome.results
        for finding in result.findings
        if finding.verdict is Verdict.INVALID
    ]
    first_s = min(max(event["time"] for event in finding.events) for finding in findings)
    ((column, _), _) = lines(page.by_id("before").attributes["d"])[0]
    assert column == round((first_s - story.START) / 1e9 / 57.0 * WIDTH)


@pytest.mark.parametrize(
    "name", sorted({*CHECKERS, *chain.from_iterable(map(foreign_properties, FOREIGN))})
)
def test_every_property_has_a_promise(name: str) -> None:
    """Else a reader is told no more than its name."""
    said = wording.promise(name)
    assert said.endswith(".")
    assert said != f"{name.replace('-', ' ').capitalize()}."
