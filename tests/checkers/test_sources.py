"""The sources that decide each property, and what is left of a property when a target lacks some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from nemesis.checkers import CHECKERS, FOREIGN, judged_by_default, not_observed, select
from nemesis.checkers.breaks.events import loaded, poll
from nemesis.checkers.checking import check
from nemesis.checkers.foreign import decided_in
from nemesis.checkers.framework.model import NotObserved, Result, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of
from nemesis.history.sources import ALL_SOURCES, STAND_INS, EventSource, source_of
from nemesis.history.vocabulary import brokers, controller, replication
from nemesis.history.vocabulary.checking import MODULES
from nemesis.history.vocabulary.declaring import declarations
from tests.checkers.histories import judge
from tests.checkers.honest_histories import JUDGED, cuts, honest_history, steps

UNTRACED = tuple(source for source in ALL_SOURCES if source is not EventSource.TRACES)
OBSERVED = [name for name, known in CHECKERS.items() if not known.not_observed_without(UNTRACED)]
"""The properties that a target without traces shows."""


def untraced(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if source_of(event.kind) is not EventSource.TRACES]


def verdict_of(decided: Property, events: Iterable[Event]) -> Verdict:
    return judge(decided.check(), events)[decided.name].verdict


def test_a_property_states_its_sources() -> None:
    with pytest.raises(TypeError, match="decided_from"):
        Property(  # type: ignore[call-arg]
            name="new",
            promise="It holds.",
            unknown="Never.",
            source="A test.",
            check=CHECKERS["hw-grows"].check,
        )


def test_brokers_write_traces_and_nobody_else_does() -> None:
    assert MODULES
    writers = {brokers.__name__, controller.__name__, replication.__name__}
    for declared in declarations():
        is_trace = declared.view.__module__ in writers
        assert (source_of(declared.kind) is EventSource.TRACES) == is_trace
    assert {source_of(kind) for kind in Kind} == {*EventSource} - STAND_INS.keys()


@pytest.mark.parametrize("name", CHECKERS)
def test_a_property_is_decided_from_what_its_check_reads(name: str) -> None:
    decided = CHECKERS[name]
    read = {source_of(kind) for kind in decided.needs}
    assert decided.decided_from
    assert decided.decided_from | decided.completed_by <= read
    assert decided.decided_from.isdisjoint(decided.completed_by)


@pytest.mark.parametrize("workload", FOREIGN)
def test_operations_of_clients_decide_every_property_of_an_external_history(workload: str) -> None:
    for decided in decided_in(workload):
        assert decided.decided_from == {EventSource.CLIENTS}
        assert not decided.completed_by


def test_what_is_not_observed_names_the_missing_sources() -> None:
    assert not_observed(judged_by_default(ALL_SOURCES), ALL_SOURCES) == ()
    with_quorum = judged_by_default([*ALL_SOURCES, EventSource.QUORUM_LOG])
    of_quorum = set(with_quorum) - set(judged_by_default(ALL_SOURCES))
    assert of_quorum == {"one-quorum-leader", "quorum-commits-stay"}
    assert not_observed(["quorum-commits-stay"], ALL_SOURCES) == (
        NotObserved(property="quorum-commits-stay", without=(EventSource.QUORUM_SAMPLES,)),
    )
    assert not_observed(["hw-grows", "unseen"], UNTRACED) == (
        NotObserved(property="hw-grows", without=(EventSource.TRACES,)),
    )
    assert len(OBSERVED) >= 24
    assert not_observed(["lost-write"], [EventSource.TRACES]) == (
        NotObserved(property="lost-write", without=(EventSource.METADATA_LOG, EventSource.CLIENTS)),
    )


@pytest.mark.parametrize("name", OBSERVED)
def test_what_is_convicted_without_traces_is_convicted_with_them(name: str) -> None:
    decided = CHECKERS[name]
    for events in decided.breaks:
        if verdict_of(decided, untraced(events)) is Verdict.INVALID:
            assert verdict_of(decided, events) is Verdict.INVALID


@pytest.mark.parametrize("name", sorted(set(OBSERVED) - {"fault-effect", "liveness"}))
def test_a_property_that_is_observed_without_traces_can_be_broken_without_them(name: str) -> None:
    decided = CHECKERS[name]
    verdicts = {verdict_of(decided, untraced(events)) for events in decided.breaks}
    assert Verdict.INVALID in verdicts


@settings(max_examples=60)
@given(steps, cuts)
def test_an_honest_cluster_without_traces_is_valid(
    taken: list[tuple[int, int]], cut: list[int]
) -> None:
    names = [name for name in OBSERVED if name in JUDGED]
    results = judge(select(names), untraced(honest_history(taken)), cut)
    observed = [results[name] for name in names]
    assert _bad(observed) == {}
    assert {result.verdict for result in observed} == {Verdict.VALID}


def test_traces_of_some_brokers_are_not_seen() -> None:
    """In a mixed cluster only the reference's brokers trace: here one that has not led since it opened its log."""
    name, events = "stale-read-above-hw", [loaded(1, 1, 0, high_watermark=0), *poll(2, 0, {0: 7})]

    def verdict(observed: Collection[EventSource]) -> Verdict:
        outcome = check(history_of(events), select([name]), observed=observed)
        return next(result.verdict for result in outcome.results if result.property == name)

    assert verdict(ALL_SOURCES) is Verdict.INVALID
    assert verdict(UNTRACED) is Verdict.VALID


LOGGED = [name for name, known in CHECKERS.items() if EventSource.BROKER_LOGS in known.stand_ins]
"""What the logs of Kafka brokers decide."""
LOGGED_KINDS = frozenset(
    {
        *(Kind.BROKER_STARTED, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.REPLICA_STOPPED),
        *(Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.APPEND, Kind.TRUNCATE),
        *(Kind.LOG_START_OFFSET, Kind.HIGH_WATERMARK, Kind.ISR_CHANGE_COMMITTED),
    }
)


def logged(events: Iterable[Event]) -> list[Event]:
    """Of the traces what Kafka brokers log, too: fewer kinds with fewer columns."""
    kept = (
        e for e in events if source_of(e.kind) is not EventSource.TRACES or e.kind in LOGGED_KINDS
    )
    return [
        replace(e, crc=None, replicas=None, maximal_isr=e.isr, producers_end=None) for e in kept
    ]


@settings(max_examples=60)
@given(steps, cuts)
def test_an_honest_cluster_whose_brokers_only_log_is_valid(
    taken: list[tuple[int, int]], cut: list[int]
) -> None:
    results = judge(select(LOGGED), logged(honest_history(taken)), cut)
    assert _bad(results[name] for name in LOGGED) == {}
    assert {results[name].verdict for name in LOGGED} == {Verdict.VALID}


@pytest.mark.parametrize("name", LOGGED)
def test_what_logs_of_brokers_decide_can_be_broken_in_them(name: str) -> None:
    decided = CHECKERS[name]
    assert Verdict.INVALID in {verdict_of(decided, logged(events)) for events in decided.breaks}


def test_logs_of_brokers_stand_in_for_traces_in_part() -> None:
    observed = {*UNTRACED, EventSource.BROKER_LOGS}
    assert len(LOGGED) >= 6
    assert not_observed(LOGGED, observed) == ()
    for name in LOGGED:
        assert CHECKERS[name].incomplete_without(observed) == (EventSource.TRACES,)
        assert not CHECKERS[name].incomplete_without(ALL_SOURCES)
    assert "traces or broker-logs" in CHECKERS["hw-grows"].extent


def _bad(results: Iterable[Result]) -> dict[str, object]:
    return {result.property: result.findings for result in results if result.findings}
