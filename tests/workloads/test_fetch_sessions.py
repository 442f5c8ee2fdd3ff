"""Consumers that keep fetch sessions record their fetches."""

from __future__ import annotations

from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event, Kind
from nemesis.testing import simulate_plan

FEW = 300


def run(scenario: str) -> tuple[list[Event], Verdict]:
    done = simulate_plan((), scenario, max_operations=FEW, checkers=["fetches-answered"])
    received = [event for event in done.simulated.events if event.kind == Kind.FETCH_RECEIVED]
    return received, done.outcome.verdict


def test_every_answer_in_a_session_is_recorded() -> None:
    received, verdict = run("rich-clients")
    assert verdict is Verdict.VALID
    further = [event for event in received if (event.fetch_epoch or 0) > 0]
    assert len({event.node for event in further}) > 1
    assert any(event.forgotten for event in further)
    assert any(not event.answered for event in further), "what has not changed is left out"


def test_without_sessions_only_answers_about_other_partitions_are_recorded() -> None:
    assert run("partition-controller") == ([], Verdict.VALID)
