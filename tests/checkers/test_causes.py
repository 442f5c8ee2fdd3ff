"""Each kind of cause in its smallest history: which step never came, and that nothing is guessed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nemesis.checkers import select
from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    elected,
    harness,
    history,
    state,
    znode,
)
from nemesis.checkers.breaks.late_recovery import LATE_RECOVERY
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event
from nemesis.history.memory import history_of
from nemesis.history.sources import ALL_SOURCES, EventSource

ASSIGNED = znode(
    1, 9, "/brokers/topics/t", zk_op="create", topic="t", data='{"partitions":{"0":[1,2]}}'
)
WRITTEN = elected(10, 10, 1, [1])
LEADS = become_leader(11, 1, 1, 5)
LAST_WRITE = (
    "90 ms before this check failed, controller 1 wrote leader 1, leader epoch 1 and ISR [1] of t-0, because the "
    "leader until then was not alive (zxid 0xa): the last write of its state."
)
REGISTERED = "80 ms before this check failed, broker 2 registered with broker epoch 20."


def registration(zxid: int, node: int, session: int = 7) -> Event:
    return znode(zxid, session, f"/brokers/ids/{node}", zk_op="create", node=node)


def registers(time: int, node: int, epoch: int, session: int = 7, **columns: Any) -> Event:
    about: dict[str, Any] = {"broker_epoch": epoch, "zxid": epoch, "session": session}
    return broker(time, node, "broker-registered", **about, **columns)


def request(time: int, kind: str, node: int, peer: int, api: str, **columns: Any) -> Event:
    about: dict[str, Any] = {"controller_epoch": 1, "broker_epoch": 20, **columns}
    return broker(time, node, f"control-request-{kind}", api=api, peer=peer, **about)


def follows(time: int, node: int, end: int, epoch: int = 1) -> Event:
    about: dict[str, Any] = {
        "leader": 1,
        "leader_epoch": epoch,
        "partition_epoch": 0,
        "controller_epoch": 1,
    }
    return broker(
        time, node, "become-follower", log_end_offset=end, high_watermark=0, **about, **TP
    )


def proposes(time: int) -> Event:
    about: dict[str, Any] = {
        "leader_epoch": 1,
        "partition_epoch": 3,
        "isr": [1],
        "maximal_isr": [1, 2],
    }
    return broker(time, 1, "isr-change-proposed", change="expand", **about, **TP)


def answers(time: int, error: str, **columns: Any) -> Event:
    about: dict[str, Any] = {"peer": 1, "leader_epoch": 1, "partition_epoch": 3, "isr": [1, 2]}
    about |= {"broker_epoch": 3, "isr_epochs": [3, 20], "error": error}
    return broker(time, 3, "alter-partition-handled", **(about | columns), **TP)


STUCK = (
    ASSIGNED,
    registration(3, 1),
    registration(4, 2),
    state(10, 9, 1, 1, [1], zk_version=3),
    WRITTEN,
    LEADS,
)
"""Broker 1 leads; broker 2 is missing in the ISR."""
BACK = (*STUCK, registration(20, 2), registers(20, 2, 20))
"""Broker 2 has registered again."""
FOLLOWS = (*BACK, follows(25, 2, 5))


def unconverged(*events: Event, check_name: str = "isr", **columns: Any) -> Finding:
    about: dict[str, Any] = {"error": "it is wrong", "duration_ms": 40, **TP} | columns
    failure = harness(100, "convergence", check=check_name, **about)
    outcome = check(history_of(history(*events, failure)), select(["convergence"]))
    (finding,) = outcome.results[0].findings
    return finding


def chain(finding: Finding) -> list[str]:
    """The sentences between the narration and the reason."""
    return list(finding.steps[1:-1])


def kinds(finding: Finding) -> list[str]:
    return [event["kind"] for event in finding.causes]


def test_a_request_that_was_never_sent() -> None:
    finding = unconverged(*BACK)
    assert chain(finding) == [
        LAST_WRITE,
        REGISTERED,
        "No controller sent broker 2 any LeaderAndIsr after that.",
        "Expected next: a LeaderAndIsr with t-0 to broker 2.",
    ]
    assert kinds(finding) == ["znode", "znode"]


def test_no_step_is_missed_where_brokers_do_not_trace() -> None:
    failure = harness(100, "convergence", check="isr", error="it is wrong", duration_ms=40, **TP)
    observed = set(ALL_SOURCES) - {EventSource.TRACES}
    outcome = check(history_of(history(*BACK, failure)), select(["convergence"]), observed=observed)
    (finding,) = outcome.results[0].findings
    assert (chain(finding), finding.causes) == ([], ())


def test_a_request_that_was_never_answered() -> None:
    sent = [request(time, "sent", 3, 2, "LeaderAndIsr") for time in (30, 40)]
    finding = unconverged(*BACK, *sent)
    assert chain(finding)[2:] == [
        (
            "60 ms before this check failed, controller 3 sent broker 2 the last of 2 LeaderAndIsr requests; broker 2 "
            "did not handle any of them."
        ),
        "Expected next: the answer of broker 2 to LeaderAndIsr.",
    ]
    assert kinds(finding)[2:] == ["control-request-sent"]


def test_a_request_that_was_refused() -> None:
    sent = request(30, "sent", 3, 2, "LeaderAndIsr", broker_epoch=4)
    refused = request(
        31, "handled", 2, 3, "LeaderAndIsr", broker_epoch=4, error="STALE_BROKER_EPOCH"
    )
    assert chain(unconverged(*BACK, sent, refused))[2:] == [
        "70 ms before this check failed, controller 3 sent broker 2 a LeaderAndIsr.",
        "69 ms before this check failed, broker 2 answered STALE_BROKER_EPOCH, and did not accept it.",
        "The request named broker epoch 4 of broker 2, which registered with 20 80 ms before this check failed.",
        "Expected next: a LeaderAndIsr that broker 2 accepts.",
    ]


def test_a_request_that_was_accepted_without_effect() -> None:
    sent = request(30, "sent", 3, 2, "LeaderAndIsr")
    handled = request(31, "handled", 2, 3, "LeaderAndIsr", error="NONE")
    updated = broker(32, 2, "metadata-updated", controller_epoch=1, peer=3, count=1)
    assert chain(unconverged(*BACK, sent, handled, updated))[2:] == [
        (
            "69 ms before this check failed, broker 2 answered the next LeaderAndIsr (the request to lead or follow) "
            "of controller 3 without an error, but did not become a follower of t-0."
        ),
        "Broker 2 applied its first UpdateMetadata only after that, so it did not know the leader's address.",
        (
            "Expected next: broker 2 becomes a follower of t-0 in leader epoch 1. No LeaderAndIsr that changes t-0 "
            "is recorded after that."
        ),
    ]


def test_a_request_that_was_answered_with_an_error_for_the_partition() -> None:
    sent = request(30, "sent", 3, 2, "LeaderAndIsr")
    handled = request(31, "handled", 2, 3, "LeaderAndIsr", error="NONE")
    about: dict[str, Any] = {"api": "LeaderAndIsr", "leader": 1, "leader_epoch": 1}
    failed = broker(32, 2, "control-request-answered", error="KAFKA_STORAGE_ERROR", **about, **TP)
    updated = broker(29, 2, "metadata-updated", controller_epoch=1, peer=3, count=1)
    assert chain(unconverged(*BACK, sent, updated, handled, failed))[3:] == [
        (
            "68 ms before this check failed, broker 2 answered KAFKA_STORAGE_ERROR to LeaderAndIsr for t-0: leader 1, "
            "leader epoch 1."
        ),
        "Expected next: broker 2 becomes a follower of t-0 in leader epoch 1.",
    ]


def test_a_proposal_that_was_never_answered() -> None:
    assert chain(unconverged(*FOLLOWS, proposes(30)))[1:] == [
        "70 ms before this check failed, leader 1 proposed an ISR with broker 2.",
        "Expected next: an answer to the proposal of leader 1.",
    ]


def test_a_proposal_that_was_refused_and_not_made_again() -> None:
    refused = answers(31, "INELIGIBLE_REPLICA", isr_epochs=[3, 4])
    finding = unconverged(*FOLLOWS, proposes(30), refused)
    assert chain(finding)[2:] == [
        "69 ms before this check failed, controller 3 answered INELIGIBLE_REPLICA.",
        "The request named broker epoch 4 of broker 2, which registered with 20 80 ms before this check failed.",
        "Expected next: leader 1 proposes an ISR with broker 2 again.",
    ]
    assert kinds(finding) == ["znode", "isr-change-proposed", "alter-partition-handled", "znode"]


def test_a_proposal_that_is_refused_again_and_again() -> None:
    refused = [proposes(30), answers(31, "X"), proposes(40), answers(41, "X")]
    assert chain(unconverged(*FOLLOWS, *refused))[1:] == [
        "70 ms before this check failed, leader 1 proposed an ISR with broker 2, the first of 2 times.",
        "59 ms before this check failed, controller 3 answered X, the last of 2 answers.",
        "Expected next: a proposal of leader 1 that the controller does not refuse.",
    ]


def test_a_proposal_that_the_leader_writes_itself() -> None:
    path = "/brokers/topics/t/partitions/0/state"
    outcome = broker(31, 1, "znode-outcome", path=path, controller_epoch=1, error="BADVERSION")
    assert chain(unconverged(*FOLLOWS, proposes(30), outcome))[2:] == [
        "69 ms before this check failed, ZooKeeper answered BADVERSION.",
        "Expected next: leader 1 proposes an ISR with broker 2 again.",
    ]


def test_a_fetch_that_never_resumed() -> None:
    ahead = append(50, 1, 1, 5, last=8, role="leader")
    finding = unconverged(*FOLLOWS, ahead)
    assert chain(finding)[1:] == [
        (
            "75 ms before this check failed, broker 2 became a follower of broker 1 for t-0 in leader epoch 1, with a "
            "log that ended at 5."
        ),
        "75 ms before this check failed, its log ended at 5, and has not grown since.",
        "50 ms before this check failed, the log of leader 1 reached 9.",
        (
            "Expected next: broker 2 fetches offset 5 of t-0 from broker 1 and appends it; fetches that are answered "
            "without an error are not recorded."
        ),
    ]
    assert kinds(finding) == ["znode", "become-follower", "append"]


def test_a_fetch_that_the_leader_refuses() -> None:
    ahead = append(50, 1, 1, 5, last=8, role="leader")
    about: dict[str, Any] = {"peer": 1, "leader_epoch": 1}
    answers = [
        broker(60, 2, "fetch-answered", error="NETWORK_EXCEPTION", **about, **TP),
        broker(70, 2, "fetch-answered", error="NOT_LEADER_OR_FOLLOWER", **about, **TP),
    ]
    finding = unconverged(*FOLLOWS, ahead, *answers)
    assert chain(finding)[-2] == (
        "30 ms before this check failed, broker 2 received NOT_LEADER_OR_FOLLOWER from broker 1 for its fetches of t-0 "
        "in leader epoch 1, the last change of that answer."
    )
    assert kinds(finding)[-1] == "fetch-answered"


def test_a_follower_that_truncates_without_end() -> None:
    cuts = [broker(30 + n, 2, "truncate", offset=5, log_end_offset=5, **TP) for n in range(3)]
    ahead = append(50, 1, 1, 5, role="leader")
    assert "It was truncated to 5 3 times since, the last 68 ms before this check failed." in chain(
        unconverged(*FOLLOWS, *cuts, ahead)
    )


def test_what_is_not_recorded_is_not_guessed() -> None:
    assert chain(unconverged(*FOLLOWS))[2:] == [
        "Its log ends at 5, as that of leader 1.",
        (
            "Expected next: broker 2 fetches, and leader 1 proposes an ISR with it; which of the two is missing is not "
            "recorded."
        ),
    ]


def test_a_broker_that_does_not_register() -> None:
    ended = [
        znode(21, 7, "/brokers/ids/2", zk_op="delete", node=2),
        Event(
            time=-1,
            process="zookeeper",
            kind="session-closed",
            zxid=21,
            session=7,
            reason="expired",
        ),
        broker(40, 1, "znode-outcome", path="/x", controller_epoch=1, error="NONE", zxid=22),
    ]
    expected = [
        (
            "60 ms before this check failed, the registration of broker 2 (broker epoch 20) was deleted with its "
            "session, which was expired (zxid 0x15)."
        ),
        "Expected next: broker 2 creates its znode /brokers/ids/2.",
    ]
    own = (
        "80 ms before this check failed, broker 2 reported its registration, with broker epoch 20."
    )
    assert chain(unconverged(*BACK, *ended)) == [LAST_WRITE, own, *expected]
    about = {"topic": None, "topic_id": None, "partition": None, "node": 2}
    assert chain(unconverged(*BACK, *ended, check_name="brokers", **about)) == [own, *expected]


def test_the_registration_of_an_earlier_session() -> None:
    events = (*STUCK, registration(20, 2), registers(20, 2, 20, session=8))
    ended = znode(21, 7, "/brokers/ids/2", zk_op="delete", node=2)
    later = broker(40, 1, "znode-outcome", path="/x", controller_epoch=1, error="NONE", zxid=22)
    assert (
        "80 ms before this check failed, broker 2 reported its registration, with broker epoch 20, whose znode an "
        "earlier session had created."
    ) in chain(unconverged(*events, ended, later))


def test_a_leader_that_does_not_lead() -> None:
    events = [event for event in STUCK if event is not LEADS]
    before = follows(5, 1, 5)
    handled = [
        request(12, "sent", 3, 1, "LeaderAndIsr"),
        request(13, "handled", 1, 3, "LeaderAndIsr", error="NONE"),
    ]
    updated = broker(4, 1, "metadata-updated", controller_epoch=1, peer=3, count=1)
    assert chain(unconverged(*events, updated, before, *handled)) == [
        (
            "95 ms before this check failed, broker 1 became a follower of broker 1 for t-0 in leader epoch 1, with a "
            "log that ended at 5."
        ),
        LAST_WRITE,
        (
            "87 ms before this check failed, broker 1 answered the next LeaderAndIsr (the request to lead or follow) "
            "of controller 3 without an error, but did not become the leader of t-0."
        ),
        (
            "Expected next: broker 1 becomes the leader of t-0 in leader epoch 1. No LeaderAndIsr that changes t-0 "
            "is recorded after that."
        ),
    ]


def test_an_election_that_did_not_raise_the_leader_epoch() -> None:
    before = [state(5, 9, 2, 1, [2, 1]), msgspec.structs.replace(follows(6, 1, 5), leader=2)]
    events = [event for event in STUCK if event is not LEADS]
    handled = [
        request(12, "sent", 3, 1, "LeaderAndIsr"),
        request(13, "handled", 1, 3, "LeaderAndIsr", error="NONE"),
    ]
    updated = broker(4, 1, "metadata-updated", controller_epoch=1, peer=3, count=1)
    assert chain(unconverged(*events, updated, *before, *handled)) == [
        (
            "94 ms before this check failed, broker 1 became a follower of broker 2 for t-0 in leader epoch 1, with a "
            "log that ended at 5."
        ),
        (
            "90 ms before this check failed, controller 1 wrote leader 1, leader epoch 1 and ISR [1] of t-0, because "
            "the leader until then was not alive (zxid 0xa): the last write of its state. But leader epoch 1 "
            "stayed, which each such write must raise."
        ),
        (
            "87 ms before this check failed, broker 1 answered the next LeaderAndIsr (the request to lead or follow) "
            "of controller 3 without an error, but did not become the leader of t-0."
        ),
        (
            "Expected next: a write with a leader epoch above 1. Broker 1 already had another role in leader epoch 1, "
            "and a broker ignores a state whose leader epoch is not higher."
        ),
    ]


@pytest.mark.parametrize(
    ("isr", "tail"),
    [
        (
            [],
            [
                "The ISR of t-0 is empty, so only an unclean election can give it a leader.",
                "Expected next: a state that keeps the last member of the ISR.",
            ],
        ),
        (
            [2],
            [
                "80 ms before this check failed, broker 2, which is in the ISR, registered.",
                (
                    "70 ms before this check failed, controller 1 wrote no leader, leader epoch 2 and ISR [2] of t-0, "
                    "because the leader until then was not alive (zxid 0x1e): the last write of its state."
                ),
                (
                    "20 ms before this check failed, controller 3 finished handling a change of brokers, with brokers "
                    "1 and 2 alive."
                ),
                "Expected next: the controller elects a leader of t-0 from broker 2.",
            ],
        ),
    ],
)
def test_an_election_that_never_came(isr: list[int], tail: list[str]) -> None:
    leaderless = state(30, 9, -1, 2, isr, zk_version=4)
    written = elected(30, 30, -1, isr, leader_epoch=2)
    controller = broker(
        5, 3, "controller-elected", controller_epoch=1, zk_version=1, session=5, zxid=2
    )
    live = broker(80, 3, "broker-change-handled", controller_epoch=1, live=[1, 2])
    events = (controller, *BACK, leaderless, written, live)
    assert chain(unconverged(*events, check_name="leaders"))[-len(tail) :] == tail


def test_metadata_that_were_never_sent() -> None:
    assert chain(unconverged(*BACK, check_name="metadata", node=2)) == [
        REGISTERED,
        "No controller sent broker 2 any UpdateMetadata after that.",
        "Expected next: an UpdateMetadata with t-0 to broker 2.",
    ]


def test_metadata_that_were_accepted_and_are_still_old() -> None:
    sent = request(30, "sent", 3, 2, "UpdateMetadata")
    handled = request(31, "handled", 2, 3, "UpdateMetadata", error="NONE")
    about: dict[str, Any] = {
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 2,
        "controller_epoch": 1,
    }
    known = broker(32, 2, "partition-metadata", **about, **TP)
    assert chain(unconverged(*BACK, sent, handled, known, check_name="metadata", node=2)) == [
        REGISTERED,
        "69 ms before this check failed, broker 2 accepted the first UpdateMetadata after that, from controller 3.",
        (
            "68 ms before this check failed, broker 2 stored the metadata of t-0: leader 1, leader epoch 0, partition "
            "epoch 2; it has not changed it since."
        ),
        (
            "Expected next: broker 2 stores leader 1 and leader epoch 1 for t-0. Not recorded: a later UpdateMetadata "
            "with another state of it."
        ),
    ]


def test_a_client_that_is_refused_because_a_broker_that_came_back_has_old_metadata() -> None:
    sent = request(30, "sent", 3, 2, "UpdateMetadata")
    handled = request(31, "handled", 2, 3, "UpdateMetadata", error="NONE")
    about: dict[str, Any] = {"leader": 1, "leader_epoch": 0, "partition_epoch": 2}
    known = broker(32, 2, "partition-metadata", controller_epoch=1, **about, **TP)
    refused: dict[str, Any] = {"check_name": "produce", "error": "NOT_LEADER_OR_FOLLOWER"}
    assert chain(unconverged(*BACK, sent, handled, known, **refused))[:3] == [
        LAST_WRITE,
        REGISTERED,
        "69 ms before this check failed, broker 2 accepted the first UpdateMetadata after that, from controller 3.",
    ]


def test_a_broker_that_records_nothing() -> None:
    events = [*STUCK, registration(20, 2), broker(20, 3, "znode-outcome", path="/x", zxid=20)]
    assert chain(unconverged(*events))[1:] == [
        "Broker 2 records no events, so what it was sent and did is not known."
    ]


def test_a_controller_that_records_nothing() -> None:
    granted = znode(2, 9, "/controller_epoch", controller_epoch=1)
    assert chain(unconverged(granted, *BACK))[-1] == (
        "The controller records no events, so what it did is not known."
    )


def test_a_replica_out_of_sync_explains_only_too_few_replicas() -> None:
    of_client = {"check_name": "produce", "error": "NOT_ENOUGH_REPLICAS"}
    assert chain(unconverged(*BACK, **of_client)) == chain(unconverged(*BACK))
    of_client["error"] = "UNKNOWN_TOPIC_OR_PARTITION"
    assert chain(unconverged(*BACK, **of_client)) == ["The recorded events do not show the cause."]


def test_a_history_without_events_of_brokers_names_no_cause() -> None:
    assert chain(unconverged()) == ["The history has no events of brokers, so it names no cause."]


def test_events_that_show_nothing_wrong_name_no_cause() -> None:
    in_order = (ASSIGNED, registration(3, 1), state(10, 9, 1, 1, [1, 2]), WRITTEN, LEADS)
    finding = unconverged(*in_order)
    assert chain(finding) == ["The recorded events do not show the cause."]
    assert finding.causes == ()


def test_what_came_after_the_failure_does_not_count() -> None:
    later = request(120, "sent", 3, 2, "LeaderAndIsr")
    assert "No controller sent broker 2 any LeaderAndIsr after that." in chain(
        unconverged(*BACK, later)
    )


def test_a_late_recovery_has_a_cause_and_what_is_undecided_has_none() -> None:
    proved, undecided = LATE_RECOVERY[:2]
    outcome = check(history_of((*BACK, *proved)), select(["late-recovery"]))
    (finding,) = outcome.results[0].findings
    assert finding.steps[-2] == "Expected next: a LeaderAndIsr with t-0 to broker 2."
    outcome = check(history_of((*BACK, *undecided)), select(["late-recovery"]))
    (finding,) = outcome.results[0].findings
    assert finding.verdict is Verdict.UNKNOWN
    assert not any(step.startswith("Expected next") for step in finding.steps)
