"""A leader whose ISR has changed: judged by what the traces show that it knew, not by how fast it is."""

from __future__ import annotations

import pytest

from nemesis.checkers.breaks.events import (
    append,
    become_leader,
    high_watermark,
    history,
    loaded,
    started,
    truncate,
    znode,
)
from nemesis.checkers.breaks.isr_commits import ALL, BEGUN, FETCHES, committed
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.isr_shrinks import leads
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.isr_commits import IsrCommits
from nemesis.history.events import Event
from tests.checkers.histories import only

SHRUNK = committed(12, [1, 2])
NEXT = leads(13, 2)
STRICT = znode(5, 1, "/config/topics/t", data='{"version":1,"config":{"min.insync.replicas":"3"}}')


def judged(*parts: Event | list[Event]) -> Result:
    return only(IsrCommits(), history(*parts))


def commits_judged(*events: Event | list[Event]) -> int:
    """How many committed ISRs were judged; terms of leaders count, too."""
    terms = sum(event.kind == "become-leader" for event in history(*events))
    return judged(*events).checked - terms


def test_the_high_watermark_stays_though_the_replica_that_held_it_back_is_out() -> None:
    result = judged(*BEGUN, FETCHES, SHRUNK, NEXT)
    (finding,) = result.findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "t-0")
    assert finding.sentence == (
        "Leader 1 of t-0 learnt that the ISR [1, 2] is committed, and left its high watermark at 0, though the logs of "
        "all members reach 1, which it knows from their fetches."
    )
    assert [event["time"] // 1_000_000 for event in finding.events] == [1, 8, 12, 13]


def test_the_ends_that_the_leader_knows_count_too() -> None:
    knows = committed(12, [1, 2], [2, 2])
    assert "reach 2," in judged(*BEGUN, FETCHES, knows, NEXT).findings[0].sentence


def test_a_leader_that_has_forgotten_a_fetch_is_convicted() -> None:
    forgets = committed(12, [1, 2], [2, -1])
    assert "reach 1," in judged(*BEGUN, FETCHES, forgets, NEXT).findings[0].sentence


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*FETCHES, SHRUNK, high_watermark(12, 1, 2, 1, [1, 2]), NEXT], id="at-once"),
        pytest.param([*FETCHES, high_watermark(11, 1, 2, 1, [1, 2]), SHRUNK, NEXT], id="before"),
        pytest.param([*FETCHES, committed(12, [1, 2], [2, 1]), high_watermark(12, 1, 2, 1, [1, 2])],
            id="as-far-as-the-leader-knows",
        ),
    ],
)  # fmt: skip
def test_a_correct_leader(events: list[Event]) -> None:
    result = judged(*BEGUN, *events)
    assert (result.verdict, commits_judged(*BEGUN, *events)) == (Verdict.VALID, 1)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [leads(2, 0), append(4, 2, 2, 0), SHRUNK, NEXT], id="one-record-shows-nothing"
        ),
        pytest.param(
            [leads(2, 0), leads(3, 1), append(4, 2, 2, 0), append(4, 2, 2, 1), SHRUNK, NEXT],
            id="two-records-in-one-answer",
        ),
        pytest.param([*FETCHES, truncate(9, 2, 1), SHRUNK, NEXT], id="a-truncated-member"),
        pytest.param([*FETCHES, loaded(9, 2, 1), SHRUNK, NEXT], id="a-member-that-starts-again"),
    ],
)
def test_a_member_that_has_shown_nothing_holds_the_high_watermark_back(events: list[Event]) -> None:
    result = judged(*BEGUN, *events)
    assert (result.verdict, result.findings) == (Verdict.VALID, ())


def test_a_tail_that_a_member_has_not_cut_yet_is_not_of_this_leader() -> None:
    """Simulated `transactions`, seed 152: the follower's log was longer than its new leader's."""
    configuration, brokers, leader, _ = BEGUN
    followers = [follows(1, 2, 2, 2), follows(1, 3, 2, 0)]
    appends = [leads(2, 0), leads(6, 1), leads(8, 2)]
    result = judged(configuration, brokers, leader, followers, appends, SHRUNK, leads(13, 3))
    assert (result.verdict, result.findings) == (Verdict.VALID, ())


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*FETCHES, SHRUNK], id="no-event-afterwards"),
        pytest.param(
            [*FETCHES, committed(6, [1, 2], [2, 2]), leads(7, 2)], id="3-may-be-caught-up"
        ),
        pytest.param(
            [*FETCHES, append(9, 3, 2, 0), append(9, 3, 2, 1), SHRUNK, NEXT], id="3-may-join"
        ),
        pytest.param(
            [
                started(2, 1, unclean=False),
                FETCHES,
                STRICT,
                SHRUNK,
                NEXT,
            ],
            id="a-setting-of-the-topic",
        ),
        pytest.param(
            [
                become_leader(2, 1, 2, 0, isr=ALL, replicas=ALL, incarnation=2),
                FETCHES,
                SHRUNK,
                NEXT,
            ],
            id="started-again-in-its-epoch",
        ),
        pytest.param([*FETCHES, follows(11, 1, 3, 2), SHRUNK, NEXT], id="deposed"),
    ],
)
def test_what_is_not_decided(events: list[Event]) -> None:
    assert not judged(*BEGUN, *events).findings
    assert commits_judged(*BEGUN, *events) <= 0, (
        "terms in a topic with settings of its own are not judged either"
    )


def test_a_leader_alone_commits_all_of_its_log() -> None:
    alone = [*FETCHES[:1], *FETCHES[2:3], committed(12, [1])]
    result = judged(*BEGUN, *alone, NEXT)
    assert "all members reach 2," in result.findings[0].sentence
    correct = judged(*BEGUN, *alone, high_watermark(12, 1, 2, 2, [1]), NEXT)
    assert correct.verdict is Verdict.VALID


def test_an_isr_below_min_insync_replicas_commits_nothing() -> None:
    strict = [started(0, node, unclean=False) for node in ALL]
    for event in strict:
        event.min_insync_replicas = 3
    assert commits_judged(BEGUN[0], strict, *BEGUN[2:], FETCHES, SHRUNK, NEXT) == 0


def test_a_leader_that_cannot_be_judged_is_not_counted() -> None:
    """Its own settings are not recorded, or a replica of its partition traces nothing."""
    all_started = [started(0, node, unclean=False) for node in ALL]
    for untraced in (0, 1):
        traced = [event for index, event in enumerate(all_started) if index != untraced]
        assert (
            judged(BEGUN[0], traced, *BEGUN[2:], FETCHES, SHRUNK, NEXT).verdict is Verdict.UNKNOWN
        )


def test_nothing_is_decided_without_the_lag_time() -> None:
    assert judged(*BEGUN[1:], FETCHES, SHRUNK, NEXT).verdict is Verdict.UNKNOWN
