"""Whether the brokers follow a changed setting: judged by the sizes of the batches that they take and refuse."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks.events import client, harness, history
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.checkers.breaks.settings_in_force import altered, batch
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.settings_in_force import SettingsInForce
from nemesis.history.events import Event
from nemesis.history.schema import ordered, table
from tests.checkers.histories import judge_rows, only

Part = Event | list[Event]
SMALL, LARGE = 100, 300


def judge(*parts: Part, punctual: list[Event] | None = None) -> Result:
    measurements = measured(100) if punctual is None else punctual
    return only(SettingsInForce(), history(*configured(), *parts, measurements))


def test_a_batch_that_is_larger_than_its_topic_takes() -> None:
    result = judge(altered(1, SMALL), batch(20, 200))
    (finding,) = result.findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "t")
    assert finding.sentence == (
        "A leader took a batch of 200 bytes for t, whose max.message.bytes had been 100, without an active fault, "
        "for 18 ms; brokers follow within 8 ms."
    )
    assert result.numbers == {"changed_topics": 1.0, "batches": 1.0}


def test_a_batch_that_is_refused_and_is_not_too_large() -> None:
    (finding,) = judge(altered(1, SMALL), batch(20, SMALL, "fail")).findings
    assert finding.sentence.startswith("A leader refused a batch of 100 bytes for t,")


def unanswered(time: int, size: int) -> list[Event]:
    """A send with ``acks=0`` succeeds when it is sent; its producer never learns what the leader made of it."""
    return [msgspec.structs.replace(event, acks=0) for event in batch(time, size)]


def deleted(time: int) -> list[Event]:
    ask = ("delete-topic", time)
    return [
        client(time + step, "administrator-1", kind, *ask)
        for step, kind in enumerate(("invoke", "ok"))
    ]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([altered(1, SMALL), batch(20, SMALL)], id="as-large-as-allowed"),
        pytest.param([altered(1, SMALL), batch(20, 101, "fail")], id="too-large"),
        pytest.param([altered(1, SMALL), batch(10, 200)], id="just-changed"),
        pytest.param([altered(1, SMALL), unanswered(20, 200)], id="sent-and-not-answered"),
        pytest.param([batch(20, 200), batch(22, 50, "fail")], id="never-changed"),
        pytest.param([altered(1, -1), batch(20, 50, "fail")], id="the-brokers-own-setting"),
        pytest.param(
            [altered(1, SMALL), altered(3, LARGE, "info"), batch(40, 200)], id="an-unknown-outcome"
        ),
        pytest.param(
            [altered(1, SMALL), altered(20, LARGE), batch(22, 200), batch(24, 200, "fail")],
            id="a-change-that-has-not-settled",
        ),
        pytest.param([altered(1, SMALL, "info"), batch(40, 200)], id="perhaps-never-changed"),
        pytest.param([altered(1, SMALL, "fail"), batch(40, 200)], id="refused"),
        pytest.param([altered(1, SMALL), fault(5, 30), batch(20, 200)], id="during-a-fault"),
        pytest.param([altered(1, SMALL), fault(5, 30), batch(35, 200)], id="just-after-a-fault"),
        pytest.param(
            [altered(1, SMALL), fault(5, 9, effect="none"), batch(40, 200)], id="an-unverified-end"
        ),
        pytest.param([altered(1, SMALL), batch(20, 200), deleted(40)], id="a-deleted-topic"),
        pytest.param([altered(1, SMALL, topic="u"), batch(20, 200)], id="another-topic"),
        pytest.param(
            [altered(1, SMALL, setting="segment.ms"), batch(20, 200)], id="another-setting"
        ),
    ],
)
def test_a_correct_cluster(parts: list[Part]) -> None:
    result = judge(*parts)
    assert (result.verdict, result.findings) == (Verdict.VALID, ())


@pytest.mark.parametrize("setting", ["max.message.bytes", "segment.ms"])
def test_a_change_that_was_under_way_with_another_one_may_be_undone(setting: str) -> None:
    first, second = altered(3, SMALL), altered(3, LARGE, setting=setting)
    for event in second:
        event.process = "administrator-1"
    first[1].time = second[1].time = 5
    changed = [first[0], second[0], first[1], second[1]]
    assert judge(altered(1, LARGE), changed, batch(20, 200)).findings == ()
    assert len(judge(altered(1, LARGE), changed, batch(20, 301)).findings) == 1


def test_a_send_that_lasts_is_judged_by_all_that_was_in_force_meanwhile() -> None:
    slow = batch(20, 200)
    slow[1].time = 40
    assert judge(altered(1, SMALL), altered(30, LARGE), slow).findings == ()


def test_a_late_machine_is_not_a_late_broker() -> None:
    parts = (altered(1, SMALL), batch(20, 200), harness(40, "phase", phase="final-reads"))
    for slow in (measured(30, load=10), measured(30, lag=101), []):
        assert judge(*parts, punctual=slow).verdict is Verdict.UNKNOWN
    assert judge(*parts, punctual=measured(30, load=9)).verdict is Verdict.INVALID


def test_nothing_is_judged_without_the_time_outs() -> None:
    unset = history(altered(1, SMALL), batch(20, 200), measured(30))
    assert only(SettingsInForce(), unset).findings == ()


changes = st.lists(st.sampled_from([SMALL, LARGE]), min_size=1, max_size=4)
sizes = st.lists(st.integers(50, 350), min_size=1, max_size=6)


@given(changes, sizes, st.integers(0, 8))
def test_a_broker_that_follows_within_the_bound_is_not_convicted(
    values: list[int], sent: list[int], lag: int
) -> None:
    """One administrator, and one producer that sends a batch every three ticks."""
    made = [altered(1 + 7 * number, value) for number, value in enumerate(values)]
    parts = []
    for number, size in enumerate(sent):
        time = 3 + 3 * number
        known = [
            value
            for change, value in zip(made, values, strict=True)
            if change[1].time + lag <= time
        ]
        limit = known[-1] if known else 1_000
        parts.append(batch(time, size, "ok" if size <= limit else "fail"))
    rows = ordered(table(history(*configured(), *made, *parts, measured(100))))
    assert judge_rows(SettingsInForce(), rows)["settings-take-effect"].findings == ()
