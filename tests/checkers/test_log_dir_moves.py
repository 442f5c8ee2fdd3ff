"""Replicas that move between log directories: when a broker is convicted, and when it is not."""

from __future__ import annotations

import msgspec
import pytest

from nemesis.checkers.breaks.events import TP, broker, history, loaded, started
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.log_dir_moves import BEGUN, ended, moved, request, stored
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.liveness.log_dir_moves import LogDirMoves
from nemesis.history.events import Event
from tests.checkers.histories import only

ASKED = (*BEGUN, request(2, "b"))
STOPPED = broker(4, 1, "replica-stopped", step="stop", **TP)
FAILED = broker(4, 1, "log-dir-failed", log_dir="b", error="reading")
POWER_CUT = fault(3, 4, fault="power-cut", targets=["broker-1"])
RESTARTED = [started(4, 1, unclean=False), loaded(5, 1, 1, log_dir="a")]


def judged(*parts: Event | list[Event]) -> Result:
    return only(LogDirMoves(), history(*parts))


def test_a_replica_that_nothing_asked_to_move() -> None:
    result = judged(*ASKED, moved(3, "c"))
    (finding,) = result.findings
    assert (finding.verdict, finding.key, result.checked) == (Verdict.INVALID, "t-0", 2)
    assert finding.sentence == (
        "Broker 1 moved its replica of t-0 to c, which no request had named."
    )


def test_a_request_whose_client_did_not_know_the_topics_id_names_the_directory() -> None:
    """Scenario log-dirs, seed 7108: AlterReplicaLogDirs names the topic."""
    nameless = [msgspec.structs.replace(event, topic_id=None) for event in request(2, "b")]
    named = {**TP, "topic_id": "A"}
    known = broker(3, 1, "log-dir-changed", log_dir="b", **named)
    assert not judged(*BEGUN, nameless, known).findings
    assert judged(*BEGUN, nameless, msgspec.structs.replace(known, log_dir="c")).findings
    assert not judged(*BEGUN, nameless, *ended(9), *stored()).findings


def test_a_request_whose_client_knew_an_earlier_topic_of_the_name() -> None:
    """The topic was deleted and created again while the request was on its way."""
    earlier = [msgspec.structs.replace(event, topic_id="A") for event in request(2, "b")]
    later = {**TP, "topic_id": "B"}
    created = broker(1, 1, "log-loaded", log_dir="a", **later)
    known = broker(4, 1, "log-dir-changed", log_dir="b", **later)
    assert not judged(*BEGUN, created, earlier, known).findings
    created_later = msgspec.structs.replace(created, time=earlier[-1].time + 1)
    assert judged(*BEGUN, earlier, created_later, known).findings
    in_doubt = [earlier[0], msgspec.structs.replace(earlier[1], kind="info")]
    assert not judged(*BEGUN, in_doubt, created_later, known).findings


def test_a_move_that_does_not_end() -> None:
    (finding,) = judged(*ASKED, ended(9), stored()).findings
    assert (finding.verdict, finding.key) == (Verdict.INVALID, "t-0")
    assert finding.sentence == (
        "Broker 1 answered that it moves its replica of t-0 to b, and at the end the replica is in a. The broker "
        "served it for 7 ms without a fault, and may take 3 ms to copy all that moved."
    )


def test_the_last_request_that_did_not_fail_counts() -> None:
    assert judged(*ASKED, moved(3, "b"), request(4, "c"), ended(9), stored()).findings
    assert judged(*ASKED, request(4, "c", "fail"), ended(9), stored()).findings
    assert not judged(*ASKED, request(4, "c", "info"), ended(9), stored()).findings


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([moved(3, "b"), *ended(9), *stored()], id="moved"),
        pytest.param([*ended(5), *stored()], id="within-the-bound"),
        pytest.param([*ended(9), *stored(size=100)], id="a-large-log"),
        pytest.param([*ended(9), *stored(alive=False)], id="a-dead-broker"),
        pytest.param([STOPPED, *ended(9), *stored()], id="a-replica-that-was-stopped"),
        pytest.param([FAILED, *ended(9), *stored()], id="a-failed-directory"),
        pytest.param([*POWER_CUT, *ended(9), *stored()], id="a-power-cut"),
        pytest.param([*fault(3, 8), *ended(9), *stored()], id="a-fault"),
        pytest.param([*RESTARTED, *ended(9), *stored()], id="not-served-since-a-restart"),
    ],
)
def test_what_a_correct_broker_does(parts: list[Event]) -> None:
    assert not judged(*ASKED, parts).findings


def test_what_the_machine_explains_is_unknown() -> None:
    result = judged(*ASKED, ended(200, load=197), stored())
    assert [finding.verdict for finding in result.findings] == [Verdict.UNKNOWN]
