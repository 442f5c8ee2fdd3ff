"""The run at a glance: who was controller, what struck which broker when, and what was not available."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.model import Outcome, Result, Stretch, Verdict
from nemesis.history.reader import open_history
from nemesis.reports import series
from nemesis.reports.marks import Marks
from nemesis.reports.series import Fault, Phase, Reign, RunSeries
from nemesis.reports.states import states
from nemesis.reports.strip import CLUSTER, Strip, strip
from nemesis.reports.terms import Term, controller_terms
from tests.reports import story
from tests.reports.conftest import Reported
from tests.reports.pages import Page


def run_with(*faults: Fault, reigns: tuple[Reign, ...] = ()) -> RunSeries:
    return RunSeries(0, 60.0, faults, (), reigns, (), {})


def drawn(run: RunSeries, *stretches: Stretch) -> Strip:
    result = Result(property="liveness", verdict=Verdict.VALID, checked=1, stretches=stretches)
    outcome = Outcome(
        verdict=Verdict.VALID, results=(result,), events=1, engine="inline", seconds=0.1
    )
    return strip(run, Marks.of(run), controller_terms(run)[0], outcome, {})


def test_a_term_ends_with_the_next_election_a_resignation_or_without_a_controller() -> None:
    reigns = (
        Reign(1.0, 1, 1),
        Reign(10.0, 2, 2),
        Reign(14.0, 2, 2, resigned=True),
        Reign(20.0, 3, 3),
        Reign(30.0, 1, 1, resigned=True),
    )
    terms, late = controller_terms(run_with(reigns=reigns), [(25.0, 40.0)])
    assert terms == [Term(1, 1, 1.0, 10.0), Term(2, 2, 10.0, 14.0), Term(3, 3, 20.0, 25.0)]
    assert late == []


def test_an_election_that_its_winner_learned_of_late_is_not_a_term() -> None:
    reigns = (Reign(1.0, 1, 1), Reign(9.0, 3, 3), Reign(11.0, 2, 2))
    terms, late = controller_terms(run_with(reigns=reigns))
    assert [(term.node, term.stop_s) for term in terms] == [(1, 9.0), (3, 60.0)]
    assert [reign.node for reign in late] == [2]


def test_a_fault_stands_in_the_lane_of_each_broker_that_it_struck_from_its_beginning() -> None:
    pair = Fault(1, "partition", ("broker-1", "broker-2"), 4.0, 5.0, 9.0)
    shown = drawn(run_with(pair, reigns=(Reign(1.0, 1, 3),)))
    lanes = {lane.name: lane.bars for lane in shown.lanes}
    for name in pair.targets:
        assert [(bar.text, bar.start_s, bar.stop_s) for bar in lanes[name]] == [
            ("partition", 4.0, 9.0)
        ]
    assert [bar.text for bar in lanes["broker-3"]] == ["controller, epoch 1"]


def test_a_broker_that_nothing_happened_to_has_an_empty_lane() -> None:
    run = run_with(Fault(1, "kill", ("broker-1",), 4.0, 5.0, 9.0))
    shown = drawn(dataclasses.replace(run, down={2: ()}))
    assert [(lane.name, len(lane.bars), lane.rows) for lane in shown.lanes] == [
        ("broker-2", 0, 1),
        ("broker-1", 1, 1),
    ]


def test_a_fault_of_no_node_stands_in_a_lane_of_the_cluster() -> None:
    shown = drawn(run_with(Fault(1, "dns", (), 4.0, 5.0, 9.0)))
    assert [lane.name for lane in shown.lanes] == [CLUSTER]


@given(st.lists(st.tuples(st.floats(0, 60), st.floats(0, 60)).map(sorted), min_size=1, max_size=30))
def test_neither_bars_nor_texts_of_a_row_overlap(spans: list[list[float]]) -> None:
    faults = [
        Fault(number, "kill", ("broker-1",), start_s, start_s, stop_s)
        for number, (start_s, stop_s) in enumerate(spans)
    ]
    (lane,) = drawn(run_with(*faults)).lanes
    assert len(lane.bars) == len(spans)
    for row in range(lane.rows):
        bars = sorted((bar for bar in lane.bars if bar.row == row), key=lambda bar: bar.start_s)
        assert bars
        for bar, following in pairwise(bars):
            assert max(bar.stop_s, bar.room_s) <= following.start_s
            assert following.start_s - bar.start_s >= 0.5


@given(st.lists(st.floats(0, 60), min_size=1, max_size=12).map(sorted))
def test_names_of_phases_are_whole_do_not_overlap_and_stay_inside(times: list[float]) -> None:
    phases = tuple(Phase("final-reads", time_s, time_s) for time_s in times)
    run = dataclasses.replace(run_with(), phases=phases)
    (lane,) = drawn(run).lanes
    least_s = len("final-reads") / 120 * run.duration_s
    for row in range(lane.rows):
        bars = sorted((bar for bar in lane.bars if bar.row == row), key=lambda bar: bar.room_s)
        assert bars
        assert bars[-1].room_s <= run.duration_s
        assert all(bar.text_start_s >= 0 for bar in bars)
        assert all(bar.room_s - bar.text_start_s > least_s for bar in bars)
        assert all(bar.room_s <= following.text_start_s for bar, following in pairwise(bars))


def test_only_what_stops_somebody_counts_as_not_available() -> None:
    def missing(label: str) -> Stretch:
        return Stretch(
            label=label, key="t-0", start_ns=0, stop_ns=10**9, fault="none", is_over=True
        )

    shown = drawn(run_with(), missing("without-leader"), missing("isr-not-full"))
    (panel,) = shown.chart.panels
    assert panel.lanes == ("no leader",)
    assert [layer.title for layer in panel.layers] == ["t-0: no leader, 1.00 s"]


def test_stands_directly_below_the_verdict_with_all_faults(reported: Reported) -> None:
    page = Page.of(reported.page)
    classes = [element.attributes.get("class", "") for element in page.elements]
    positions = [
        classes.index("verdict invalid"),
        classes.index("card strip"),
        classes.index("card finding invalid"),
    ]
    assert positions == sorted(positions)
    glance = page.elements[positions[1]].words
    for name, *_ in story.FAULTS:
        assert name in glance
    for number in (1, 2, 3, 4):
        assert f"controller, epoch {number}" in glance


def test_the_slider_knows_the_state_of_every_broker(reported: Reported) -> None:
    known = json.loads(Page.of(reported.page).by_id("states").text)
    assert known["brokers"] == [1, 2, 3]
    partition = next(each for each in known["partitions"] if each["name"] == "orders-0")
    assert partition["led"] == [[pytest.approx(0.8), 1, 0], [pytest.approx(17.9), 3, 1]]
    assert [isr for _, isr in partition["isr"]] == [[1, 2, 3], [2, 3], [1, 2, 3], [1, 3], [1, 2, 3]]
    assert [fault[2:] for fault in known["faults"]] == [
        [name, targets] for name, _, _, targets in story.FAULTS
    ]
    assert [term[2:] for term in known["terms"]] == [[1, 1], [2, 2], [3, 3], [1, 4]]


def test_the_slider_opens_with_the_first_proof(reported: Reported) -> None:
    run = series.extract(series.read(open_history(reported.run.history)))
    terms, _ = controller_terms(run)
    shown = states(run, Marks.of(run, [24.5, 40.0]), terms)
    assert shown is not None
    assert shown.start_s == 24.5


def test_without_brokers_there_is_nothing_to_slide_over() -> None:
    assert states(run_with(), Marks.of(run_with()), []) is None
