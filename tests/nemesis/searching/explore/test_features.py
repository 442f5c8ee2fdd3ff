"""What of a run can be new: orders, distances, buckets, and what happens under faults."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.history.events import Event
from nemesis.searching.explore.coverage import measure
from nemesis.searching.explore.features import bucket, features, with_features


def event(kind: str, process: str = "broker-1", **columns: Any) -> Event:
    return Event(time=1, process=process, kind=kind, **columns)


def of_t(kind: str, process: str = "broker-1", **columns: Any) -> Event:
    return event(kind, process, topic="t", partition=0, **columns)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0"), (1, "<2"), (2, "<4"), (3, "<4"), (4, "<8"), (100, "<128"), (-3, "-<4")],
)
def test_numbers_are_put_into_buckets_by_powers_of_two(number: int, expected: str) -> None:
    assert bucket(number) == expected


def test_successive_transitions_of_one_subject_are_a_pair() -> None:
    reached = list(
        features(
            [
                of_t("transition", from_state="New", to_state="Online"),
                of_t("transition", replica=2, from_state="New", to_state="Online"),
                of_t("transition", from_state="Online", to_state="Gone", error="illegal"),
                of_t("transition", from_state="Online", to_state="Offline"),
            ]
        )
    )
    assert reached == [
        ("transitions in a row", "partition: start, New->Online"),
        ("transitions in a row", "replica: start, New->Online"),
        ("transitions in a row", "partition: New->Online, Online->Gone!"),
        ("transitions in a row", "partition: New->Online, Online->Offline"),
    ]


def test_the_order_of_first_events_after_an_election_is_a_feature() -> None:
    reached = list(
        features(
            [
                of_t("leader-elected", strategy="new"),
                of_t("replica-stopped", step="stop"),
                of_t("replica-stopped", step="stop"),
                event("session-state", session_state="expired"),
                of_t("leader-elected", strategy="offline"),
            ]
        )
    )
    assert reached == [
        ("orders around elections", "elected:new > replica-stopped:stop"),
        ("orders around elections", "replica-stopped:stop > session-state:expired"),
        ("orders around elections", "session-state:expired > elected:offline"),
    ]


def test_lags_are_those_of_logs() -> None:
    reached = list(
        features(
            [
                of_t("append", "broker-1", last_offset=99),
                of_t("append", "broker-2", last_offset=89),
                of_t("leader-elected", "broker-3", strategy="offline", leader=2),
                of_t("truncate", "broker-1", log_end_offset=90, high_watermark=90),
            ]
        )
    )
    assert [feature for feature in reached if feature[0] == "lags"] == [
        ("lags", "elected:offline: behind the longest log <16"),
        ("lags", "truncate: log end above high watermark 0"),
        ("lags", "truncate: removes <16"),
    ]


def test_epochs_are_compared_with_the_newest() -> None:
    reached = list(
        features(
            [
                event("controller-elected", controller_epoch=3),
                event("control-request-handled", controller_epoch=1, error="NONE"),
                of_t("leader-elected", leader_epoch=5),
                of_t("isr-change-committed", leader_epoch=4),
            ]
        )
    )
    assert [feature for feature in reached if feature[0] == "epoch distances"] == [
        ("epoch distances", "control-request-handled: controller epoch behind <4"),
        ("epoch distances", "isr-change-committed: leader epoch behind <2"),
    ]


def test_remarkable_events_count_under_each_fault_in_force() -> None:
    reached = list(
        features(
            [
                event("fault-applied", "nemesis", fault="pause", fault_id=1),
                event("fault-applied", "nemesis", fault="kill", fault_id=2),
                event("fault-healed", "nemesis", fault="pause", fault_id=1),
                event("controller-elected", controller_epoch=1),
                event("fault-healed", "nemesis", fault="kill", fault_id=2),
                event("controller-elected", controller_epoch=2),
            ]
        )
    )
    assert reached == [
        ("events under faults", "kill: controller-elected"),
    ]


def test_the_coverage_table_lists_what_counts_as_new() -> None:
    events = [of_t("transition", from_state="New", to_state="Online")]
    coverage = with_features(measure(events), events)
    table = "\n".join(coverage.table())
    assert "transitions in a row" in table
    assert "partition states" in table
    assert coverage.runs == 1
