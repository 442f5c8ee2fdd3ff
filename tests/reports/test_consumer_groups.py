"""Consumer groups on the page: generations, rebalances and owners over time."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.checkers import select
from nemesis.checkers.breaks.groups import joined, owned, request
from nemesis.checkers.checking import check
from nemesis.checkers.groups.group_operations import groups
from nemesis.history.events import Event
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory
from nemesis.reports import series, write
from nemesis.reports.consumer_groups import GroupsPanel, _assignors, groups_panel
from nemesis.reports.run_axis import SHORTEST
from tests.reports import story
from tests.reports.pages import Page

SECOND = 1_000_000_000
WORKLOAD = {"workload": {"name": "groups"}}


def asked_as_nobody(join: list[Event]) -> list[Event]:
    """The JoinGroup of a process that is not a member yet."""
    return [msgspec.structs.replace(join[0], member=None), join[1]]


def events() -> list[Event]:
    """Members a and b share a generation; a crashes and joins again, as the only member of the next generation."""
    first = [*joined(SECOND, 1, 1, taking=SECOND // 2, assignor="range")]
    other = [*joined(SECOND + 1, 1, 1, member="b", taking=SECOND // 2, assignor="range")]
    synced = request(2 * SECOND, "sync-group", 1, 1, taking=SECOND)
    again = joined(6 * SECOND, 2, 2, taking=SECOND // 4)
    resynced = request(7 * SECOND, "sync-group", 2, 2, taking=SECOND // 4)
    return [
        Event(time=0, process="nemesis", kind="phase", seq=0, phase="warm-up"),
        *asked_as_nobody(first),
        *asked_as_nobody(other),
        *synced,
        owned(3 * SECOND, 1),
        owned(3 * SECOND, 1, member="b"),
        owned(5 * SECOND, 1, member="b", kind="revoked"),
        *asked_as_nobody(again),
        *resynced,
        owned(8 * SECOND, 2),
        Event(time=10 * SECOND, process="nemesis", kind="phase", seq=1, phase="end"),
    ]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path, story.info(config=WORKLOAD))
    lines = [msgspec.json.encode(event) for event in sorted(events(), key=lambda item: item.time)]
    run.raw_file("clients").write_bytes(b"\n".join(lines) + b"\n")
    ingest(run)
    return run


def panel(run: RunDirectory) -> GroupsPanel:
    history = open_history(run.history)
    drawn = groups_panel(run.read_info(), history, series.extract(series.read(history)))
    assert drawn is not None
    return drawn


def test_a_rebalance_lasts_from_the_first_join_to_the_last_assignment(run: RunDirectory) -> None:
    (group,) = panel(run).groups
    generations, rebalances, _ = group.lanes
    assert [bar.label for bar in rebalances.bars] == [
        "into generation 1, 2 members: 1.00 to 3.00 s",
        "into generation 2, 1 member: 6.00 to 7.25 s",
    ]
    assert [(bar.left, bar.width) for bar in rebalances.bars] == [(100.0, 200.0), (600.0, 125.0)]
    assert [bar.label for bar in generations.bars] == [
        "generation 1, 2 members, coordinator broker-1: 3.00 to 7.25 s",
        "generation 2, 1 member, coordinator broker-2: 7.25 to 10.00 s",
    ]
    assert group.summary == (
        "assignor range; 2 generations; rebalances took 1.62 s in the median, 2.00 s at most"
    )


def test_a_group_names_each_assignor_that_its_members_have_agreed_on() -> None:
    joins = [
        *joined(1, 1, 1, assignor="range"),
        *joined(3, 1, 2, assignor="cooperative-sticky"),
        *joined(5, 1, 3, assignor="cooperative-sticky"),
        *joined(7, 1, 4),
    ]
    known = groups(enumerate(joins))["g"]
    assert _assignors(known) == ["assignor range, then cooperative-sticky"]
    assert _assignors(groups(enumerate(joined(1, 1, 1)))["g"]) == []


def test_a_crashed_member_owns_until_its_process_joins_again(run: RunDirectory) -> None:
    (group,) = panel(run).groups
    lane = group.lanes[2]
    assert lane.name == "t-0"
    assert [bar.label for bar in lane.bars] == [
        "member-a in generation 1: 3.00 to 6.00 s",
        "member-b in generation 1: 3.00 to 5.00 s",
        "member-a in generation 2: 8.00 to 10.00 s",
    ]
    shades = dict(panel(run).members)
    assert [bar.shade for bar in lane.bars] == [
        shades["member-a"],
        shades["member-b"],
        shades["member-a"],
    ]
    assert shades["member-a"] != shades["member-b"]


def test_short_bars_that_would_lie_on_each_other_are_left_out(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, story.info(config=WORKLOAD))
    steps = SECOND // 1_000
    moves = [
        event
        for number in range(400)
        for event in (
            owned((10 * number + 1) * steps, 1),
            owned((10 * number + 2) * steps, 1, kind="revoked"),
        )
    ]
    last = Event(time=20 * SECOND, process="nemesis", kind="phase", seq=1, phase="end")
    lines = [msgspec.json.encode(event) for event in (*events(), *moves, last)]
    run.raw_file("clients").write_bytes(b"\n".join(lines) + b"\n")
    ingest(run)
    (group,) = panel(run).groups
    # A bar is at least 20 ms wide here, and one began every 10 ms for 4 s.
    short = [bar for bar in group.lanes[2].bars if bar.width == SHORTEST]
    assert 190 <= len(short) <= 210


def test_the_page_draws_the_groups_of_a_run_with_groups(run: RunDirectory) -> None:
    write(run, check(run.history, select(["generation-grows"])))
    page = Page.of(run.report_file.read_text())
    assert page.by_id("consumer-groups").words == "Consumer groups"
    titles = [element.words for element in page.all("title")]
    assert "into generation 2, 1 member: 6.00 to 7.25 s" in titles
    assert "#consumer-groups" in [link.attributes.get("href") for link in page.all("a")]


def test_a_run_without_groups_has_no_such_section(tmp_path: Path, run: RunDirectory) -> None:
    run.write_info(story.info())
    write(run, check(run.history, select(["generation-grows"])))
    assert "consumer-groups" not in run.report_file.read_text()
