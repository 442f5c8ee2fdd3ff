"""Who lags leaves the ISR in time: judged by the ends that leader and follower traced, and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import append, become_leader, history
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.isr_shrinks import BEGUN, FOLLOWS, ISR, leads, smaller
from nemesis.checkers.breaks.late_recovery import SETTINGS, configured, fault, measured
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.isr_shrinks import IsrShrinks
from nemesis.history.events import Event
from nemesis.history.schema import ordered, table
from nemesis.reference.cluster.replica import Replica
from tests.checkers.histories import judge_rows, only

LAG_MS = SETTINGS["replica.lag.time.max.ms"]
PUNCTUAL = measured(1_000)
LAGS = leads(2, 0)
"""Broker 2 is behind from 2 ms on, and has to go from 6 ms to 8 ms."""
STILL_LEADS = leads(30, 1)


def judge(*parts: Event | list[Event], punctual: list[Event] = PUNCTUAL) -> Result:
    return only(IsrShrinks(), history(*BEGUN, *parts, punctual))


def test_who_lags_for_longer_than_the_leader_may_take_to_look() -> None:
    result = judge(FOLLOWS, LAGS, STILL_LEADS)
    (finding,) = result.findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "t-0")
    assert finding.sentence == (
        "Leader 1 of t-0 kept broker 2 in its ISR, and proposed no other ISR, for 24 ms in which the broker had not "
        "been caught up for 4 ms (replica.lag.time.max.ms): its log had reached 0 at most. A leader looks every 2 ms."
    )
    assert [event["time"] // 1_000_000 for event in finding.events] == [1, 1, 2, 30]
    assert result.numbers == {"bound_ms": 6.0, "laggards": 1.0}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([FOLLOWS, LAGS, smaller(8), STILL_LEADS], id="proposed-in-time"),
        pytest.param([FOLLOWS, LAGS, smaller(4), STILL_LEADS], id="a-change-in-flight"),
        pytest.param([FOLLOWS, LAGS, append(8, 2, 2, 0), STILL_LEADS], id="it-catches-up"),
        pytest.param([FOLLOWS, STILL_LEADS], id="an-idle-leader"),
        pytest.param([FOLLOWS, LAGS, leads(8, 1)], id="no-trace-of-the-leader-afterwards"),
        pytest.param(
            [FOLLOWS, LAGS, become_leader(8, 1, 3, 1, isr=[1]), leads(30, 2)], id="a-new-epoch"
        ),
        pytest.param([FOLLOWS, LAGS, follows(8, 1, 3, 1), leads(30, 2)], id="deposed"),
        pytest.param(
            [FOLLOWS, LAGS, *fault(3, 28, targets=["broker-1"]), STILL_LEADS], id="a-paused-leader"
        ),
        pytest.param(
            [FOLLOWS, LAGS, *fault(3, 9, targets=["broker-1"], effect="none"), STILL_LEADS],
            id="an-end-not-verified",
        ),
        pytest.param(
            [FOLLOWS, LAGS, smaller(5), smaller(9, "committed", [1]), STILL_LEADS], id="it-is-gone"
        ),
        pytest.param(
            [
                *(FOLLOWS, LAGS, smaller(5), smaller(9, "committed")),
                *(smaller(11), smaller(12, "committed", [1]), STILL_LEADS),
            ],
            id="asked-again",
        ),
    ],
)
def test_a_correct_leader(events: list[Event]) -> None:
    result = judge(*events)
    assert (result.verdict, result.findings) == (Verdict.VALID, ())
    assert result.checked > 0


def test_a_fault_that_leaves_the_leader_running_explains_nothing() -> None:
    for harmless in (
        fault(3, 28, targets=["broker-1"], fault="partition"),
        fault(3, 28, targets=["broker-2"]),
        fault(3, 28, targets=["broker-1"])[:0],
    ):
        assert judge(FOLLOWS, LAGS, harmless, STILL_LEADS).verdict is Verdict.INVALID


def test_an_end_of_another_epoch_does_not_count() -> None:
    earlier = [follows(0, 2, 1, 9), append(0, 2, 1, 9)]
    assert judge(*earlier, follows(1, 2, 2, 0), LAGS, STILL_LEADS).verdict is Verdict.INVALID
    assert judge(*earlier, LAGS, STILL_LEADS).verdict is Verdict.INVALID


def test_a_dead_leader_has_until_its_last_trace() -> None:
    again = become_leader(40, 1, 2, 1, isr=ISR, incarnation=2)
    assert judge(FOLLOWS, LAGS, leads(8, 1), again).verdict is Verdict.VALID
    assert judge(FOLLOWS, LAGS, leads(9, 1), again).verdict is Verdict.INVALID


def test_a_late_machine_is_not_a_late_leader() -> None:
    assert judge(FOLLOWS, LAGS, STILL_LEADS, punctual=measured(31, load=30)).findings == ()
    late = leads(200, 1)
    for slow in (measured(201, load=200), measured(201, lag=101), []):
        assert judge(FOLLOWS, LAGS, late, punctual=slow).verdict is Verdict.UNKNOWN
    assert judge(FOLLOWS, LAGS, late, punctual=measured(201, load=100)).verdict is Verdict.INVALID


def test_nothing_is_decided_without_the_lag_time_or_without_the_traces_of_the_follower() -> None:
    unset = [event for event in history(*BEGUN, FOLLOWS, LAGS, STILL_LEADS) if not event.setting]
    assert only(IsrShrinks(), unset).verdict is Verdict.UNKNOWN
    begun = (configured(), become_leader(1, 1, 2, 0, isr=[1, 3]), LAGS, STILL_LEADS)
    assert only(IsrShrinks(), history(*begun)).verdict is Verdict.UNKNOWN


def verdict(*parts: Event | list[Event]) -> Verdict:
    """Return the verdict without cutting the history."""
    rows = ordered(table(history(*BEGUN, *parts, PUNCTUAL)))
    return judge_rows(IsrShrinks(), rows)["isr-shrinks-in-time"].verdict


leader_times = st.lists(st.integers(2, 40), min_size=1, max_size=8).map(sorted)
catches = st.lists(st.tuples(st.integers(2, 40), st.integers(0, 8)), max_size=8).map(sorted)


def partition(appended: list[int], caught: list[tuple[int, int]]) -> list[Event]:
    """A leader that appends at these times, and a follower that fetches up to these ends, as far as there are records.

    What happens in one millisecond happens in the order in which the check reads it: the follower comes first.
    """
    events, end = [], 0
    for time in range(2, 42):
        held = sum(when < time for when in appended)
        for when, reach in caught:
            if when == time and min(reach, held) > end:
                end = min(reach, held)
                events.append(append(time, 2, 2, end - 1))
        events += [
            append(time, 1, 2, number, role="leader")
            for number, when in enumerate(appended)
            if when == time
        ]
    return events


def ends(events: list[Event], node: int, time: int) -> int:
    """The end of a log at a time."""
    traced = [event.log_end_offset or 0 for event in events if event.node == node]
    times = [event.time for event in events if event.node == node]
    return max([0, *(end for end, when in zip(traced, times, strict=True) if when <= time)])


def is_lagging(events: list[Event], time: int) -> bool:
    """Whether the follower was last caught up at least the lag time before: the definition, moment by moment."""
    held = ends(events, 2, time)
    return time - LAG_MS >= 1 and ends(events, 1, time - LAG_MS) > held


@given(leader_times, catches)
def test_it_agrees_with_the_definition(appended: list[int], caught: list[tuple[int, int]]) -> None:
    events = partition(appended, caught)
    last = max(event.time for event in events if event.node == 1)
    longest, running = 0, 0
    for time in range(last):
        running = running + 1 if is_lagging(events, time) else 0
        longest = max(longest, running)
    is_broken = longest > LAG_MS // 2
    assert verdict(FOLLOWS, events) is (Verdict.INVALID if is_broken else Verdict.VALID)


@given(leader_times, catches, st.integers(0, 1))
def test_a_leader_that_looks_every_half_of_the_lag_time_is_not_convicted(
    appended: list[int], caught: list[tuple[int, int]], phase: int
) -> None:
    """The leader judges its follower as the reference does, by the fetch that follows each of its appends."""
    events, replica = partition(appended, caught), Replica(2)
    replica.reset(now=1, in_isr=True)
    shown: list[Event] = []
    for time in range(1, 42):
        if (time + phase) % (LAG_MS // 2) == 0 and not replica.is_caught_up(
            ends(events, 1, time - 1), time, LAG_MS
        ):
            shown.append(smaller(time))
            break
        shown += [event for event in events if event.time == time]
        replica.update_fetch_state(
            fetch_offset=ends(events, 2, time),
            log_start_offset=0,
            leader_end_offset=ends(shown, 1, time),
            now=time,
            broker_epoch=1,
        )
    assert verdict(FOLLOWS, shown) is Verdict.VALID
