"""What is drawn is what was recorded."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event
from nemesis.history.schema import ordered, table
from nemesis.reports import clients, wording
from nemesis.reports.charts.paths import WIDTH
from nemesis.reports.charts.scale import linear, rounded_step
from nemesis.reports.figures import controllers, operations, replicas
from nemesis.reports.marks import Marks
from nemesis.reports.sampling import bounds, thinned
from nemesis.reports.series import Fault, RunSeries, extract
from tests.reports.drawn import lines

TP = {"topic": "t", "topic_id": "id", "partition": 0}
NS = 1_000_000_000


def rows(events: Iterable[Event]) -> Segment:
    return Segment.starting_at(ordered(table(events)), 0)


def series(*events: Event) -> RunSeries:
    return extract(rows(events))


def event(seconds: float, process: str, kind: str, **columns: object) -> Event:
    node = int(process[7:]) if process.startswith("broker-") else None
    time = 100 * NS + round(seconds * NS)
    return Event(time=time, process=process, kind=kind, node=node, **columns)  # type: ignore[arg-type]


def test_time_counts_from_the_first_event() -> None:
    run_series = series(
        event(2, "harness", "phase", phase="a"), event(5, "harness", "phase", phase="b")
    )
    assert run_series.origin_ns == 102 * NS
    assert run_series.duration_s == 3.0
    assert [(phase.name, phase.start_s, phase.stop_s) for phase in run_series.phases] == [
        ("a", 0.0, 3.0),
        ("b", 3.0, 3.0),
    ]


def test_a_fault_is_in_force_from_its_effect_to_its_heal() -> None:
    about = {"fault": "pause", "fault_id": 4, "targets": ["broker-1"]}
    (fault,) = series(
        event(0, "nemesis", "fault-invoke", **about),
        event(1, "nemesis", "fault-applied", **about, effect="measured", detail="{}"),
        event(4, "nemesis", "fault-healed", **about, effect="verified"),
    ).faults
    assert fault == Fault(
        4, "pause", ("broker-1",), 0.0, 1.0, 4.0, "measured", "verified", "", "{}"
    )


def test_a_fault_that_was_never_healed_shades_to_the_end() -> None:
    run_series = series(
        event(1, "nemesis", "fault-applied", fault="pause", fault_id=1, targets=["broker-1"]),
        event(9, "harness", "phase", phase="end"),
    )
    assert [(band.start_s, band.stop_s) for band in Marks.of(run_series).bands] == [(0.0, 8.0)]


def test_the_isr_is_what_was_committed_not_what_a_broker_believed() -> None:
    (partition,) = series(
        event(0, "broker-1", "leader-elected", **TP, leader=1, leader_epoch=0, isr=[1, 2]),
        event(1, "broker-1", "become-leader", **TP, leader_epoch=0, isr=[1, 2, 3]),
        event(2, "broker-1", "isr-change-committed", **TP, leader_epoch=0, isr=[1]),
    ).partitions
    assert partition.isr == ((0.0, (1, 2)), (2.0, (1,)))
    assert partition.leaders == (1,)


def test_without_traced_elections_a_brokers_own_word_is_drawn() -> None:
    (partition,) = series(
        event(0, "broker-3", "become-leader", **TP, leader_epoch=2, isr=[3], log_end_offset=7)
    ).partitions
    assert partition.leaders == (3,)
    assert partition.leader_epochs.y.tolist() == [2]
    assert partition.log_ends[3].y.tolist() == [7]


def test_a_line_falls_where_its_log_was_cut() -> None:
    run_series = series(
        event(0, "broker-1", "append", **TP, log_end_offset=8),
        event(1, "broker-1", "truncate", **TP, log_end_offset=4),
        event(2, "harness", "phase", phase="end"),
    )
    (shown,) = offset_lines(run_series)
    assert [x for x, _ in shown] == [0, WIDTH // 2, WIDTH // 2, WIDTH]
    before, still, after, last = (height for _, height in shown)
    assert before == still < after == last


def test_no_line_of_a_log_crosses_the_time_in_which_its_broker_did_not_run() -> None:
    killed = {"fault": "kill", "fault_id": 1, "targets": ["broker-1"]}
    run_series = series(
        event(0, "broker-1", "broker-started"),
        event(1, "broker-1", "append", **TP, log_end_offset=9),
        event(4, "nemesis", "fault-invoke", **killed),
        event(6, "broker-1", "broker-started"),
        event(7, "broker-1", "log-loaded", **TP, log_end_offset=9),
        event(10, "harness", "phase", phase="end"),
    )
    assert run_series.down == {1: ((4.0, 6.0),)}
    before, after = offset_lines(run_series)
    assert (before[0][0], before[-1][0]) == (WIDTH // 10, 4 * WIDTH // 10)
    assert (after[0][0], after[-1][0]) == (7 * WIDTH // 10, WIDTH)


@pytest.mark.parametrize(
    ("detail", "down"),
    [
        ('{"broker-1": {"dead": true, "pid": 7}}', ((4.0, 10.0),)),
        ('{"broker-1": {"dead": false, "pid": 7}}', ()),
        ('{"broker-2": {"dead": true, "pid": 8}}', ()),
        ('{"broker-1": {"killed": {"dead": true}, "started": {"answered": true}}}', ()),
        ('{"held_bytes": 4096}', ()),
        ("not JSON", ()),
    ],
)
def test_a_broker_that_a_fault_ended_and_that_did_not_start_again_is_down_to_the_end(
    detail: str, down: tuple[tuple[float, float], ...]
) -> None:
    killed = {"fault": "kill", "fault_id": 1, "targets": ["broker-1"]}
    events = (
        event(0, "broker-1", "broker-started"),
        event(1, "broker-1", "append", **TP, log_end_offset=9),
        event(4, "nemesis", "fault-invoke", **killed),
        event(5, "nemesis", "fault-applied", **killed, detail=detail),
        event(10, "harness", "phase", phase="end"),
    )
    assert series(*events).down == {1: down}
    again = series(*events, event(6, "broker-1", "broker-started"))
    assert again.down == {1: ((4.0, 6.0),)}


def offset_lines(run_series: RunSeries) -> list[list[tuple[int, int]]]:
    (partition,) = run_series.partitions
    panel = replicas(partition, run_series, 10).panels[-1]
    return lines(panel.layers[0].path)


def test_the_line_of_controllers_is_broken_where_there_was_none() -> None:
    run_series = series(
        event(0, "broker-1", "controller-elected", controller_epoch=1),
        event(6, "broker-2", "controller-elected", controller_epoch=2),
        event(10, "harness", "phase", phase="end"),
    )
    shown = controllers(run_series, [(3.0, 6.01)])
    assert shown is not None
    first, second = lines(shown.panels[0].layers[0].path)
    assert (first[0][0], first[-1][0]) == (0, 3 * WIDTH // 10)
    assert (second[0][0], second[-1][0]) == (6 * WIDTH // 10, WIDTH)


def test_no_line_of_latencies_crosses_a_time_without_operations() -> None:
    invoked = np.array([0.0, 1.0, 2.0, 50.0, 51.0, 100.0])
    outcome = np.zeros(6, dtype=np.int64)
    calls = clients.Operations(invoked, np.full(6, 0.01), outcome, open=0)
    shown = operations("send", calls, 100.0)
    assert shown is not None
    median = lines(shown.panels[1].layers[0].path)
    assert [len(piece) for piece in median] == [4, 3, 2]


def test_operations_are_paired_by_process_and_number() -> None:
    calls = clients.operations(
        rows(
            [
                event(0, "producer-0", "invoke", op=1, f="send"),
                event(0.1, "producer-1", "invoke", op=1, f="send"),
                event(0.5, "producer-1", "info", op=1, f="send"),
                event(2, "producer-0", "ok", op=1, f="send"),
                event(3, "producer-0", "invoke", op=2, f="send"),
                event(4, "consumer-0", "invoke", op=1, f="poll"),
                event(4.25, "consumer-0", "fail", op=1, f="poll"),
            ]
        ),
        100 * NS,
    )
    assert list(calls) == ["send", "poll"]
    assert calls["send"].latency_s.tolist() == pytest.approx([2.0, 0.4])
    assert calls["send"].counts() == {"ok": 1, "fail": 0, "info": 1, "open": 1}
    assert calls["poll"].counts() == {"ok": 0, "fail": 1, "info": 0, "open": 0}


def test_questions_when_the_load_has_ended_are_not_drawn() -> None:
    asked = [
        event(time, process, kind, op=1, f="offset-by-time")
        for process in ("query-0", "final-times-1.0")
        for time, kind in ((1, "invoke"), (2, "ok"))
    ]
    assert len(clients.operations(rows(asked), 100 * NS)["offset-by-time"]) == 1


@pytest.mark.parametrize("high", [3, 45, 99, 110, 230, 449, 451, 499, 760, 990])
@pytest.mark.parametrize("most", [2, 3, 5])
def test_an_axis_has_a_tick_above_its_lowest_one(high: int, most: int) -> None:
    assert len(linear([0.0, float(high)]).ticks(most)) > 1


def test_rates_count_every_operation_once() -> None:
    completed, outcome = np.array([0.1, 0.9, 1.5, 3.0]), np.array([0, 0, 1, 2])
    middle, per_s = clients.rates(completed, outcome, 3.0, 0.5)
    assert len(middle) == 6
    assert {kind: values.sum() * 0.5 for kind, values in per_s.items()} == {
        "ok": 2,
        "fail": 1,
        "info": 1,
    }
    assert per_s["info"][-1] == 2.0


def test_quantiles_are_those_of_each_bin() -> None:
    invoked = np.array([0.0] * 100 + [5.0])
    latency = np.array([*range(1, 101), 7.0], dtype=np.float64)
    middle, (half, most, worst) = clients.quantiles(invoked, latency, 1.0, (0.5, 0.99, 1.0))
    assert middle.tolist() == [0.5, 5.5]
    assert (half.tolist(), most.tolist(), worst.tolist()) == ([50, 7], [99, 7], [100, 7])


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=400), st.integers(4, 60))
def test_thinning_keeps_ends_and_extremes(values: list[int], most: int) -> None:
    x, y = np.arange(len(values), dtype=np.float64), np.array(values, dtype=np.int64)
    kept = thinned(x, y, most)
    assert len(kept) <= max(4, most)
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert {0, len(values) - 1} <= set(kept.tolist())
    assert (y[kept].min(), y[kept].max()) == (min(values), max(values))


def test_bounds_of_runs() -> None:
    starts, stops = bounds(np.array([3, 3, 1, 4, 4]))
    assert list(zip(starts.tolist(), stops.tolist(), strict=True)) == [(0, 2), (2, 3), (3, 5)]
    assert bounds(np.array([], dtype=np.int64))[0].tolist() == []


@given(st.floats(1e-6, 1e6))
def test_bins_are_round_and_few(duration_s: float) -> None:
    width = rounded_step(duration_s, 100)
    assert duration_s / width <= 101
    assert duration_s / width >= 30
    assert f"{width:.0e}"[0] in "125"


def test_every_property_has_a_sentence() -> None:
    assert [wording.promise(name) for name in CHECKERS] == [
        declared.promise for declared in CHECKERS.values()
    ]
    assert wording.promise("no-such-thing") == "No such thing."


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2, 3], "[1, 2, 3]"),
        ([0, 1, 2, 3, 4, 9], "[0–4, 9]"),
        (list(range(0, 60, 2)), "[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, … 18 more …, 56, 58]"),
        ([], "[]"),
        (["broker-1"], "[broker-1]"),
        (True, "yes"),
        ("x" * 700, "x" * 600 + "… (700 characters)"),
    ],
)
def test_values_are_written_for_people(value: object, said: str) -> None:
    assert wording.text(value) == said


def test_units_stand_last_in_names_of_numbers() -> None:
    assert wording.quantity("without_leader_ms", 1830.0) == ("without leader", "1,830 ms")
    assert wording.quantity("elections", 3.0) == ("elections", "3")
    assert wording.quantity("never_read_records", 1.0) == ("never read", "1 record")
    assert wording.quantity("never_read_records", 2.0) == ("never read", "2 records")
    assert wording.quantity("longest_wait_ms", 2985.63853) == ("longest wait", "2,986 ms")
    assert wording.quantity("share", 0.12345) == ("share", "0.123")
