"""Known behaviour of Kafka differs from new findings by evidence, and is reported apart."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.judge import read_outcome
from nemesis.judging.known.behaviour import Evidence, KnownBehaviour
from nemesis.judging.known.last_replica import LAST_REPLICA
from nemesis.judging.known.lost_leader_and_isr import without_role
from nemesis.judging.known.marking import Allowed, marked
from tests.nemesis.judging.archives import archived

LAST_REPLICA_STRUCK = """\
- {at_s: 4.0, fault: kill, target: broker-2, duration_s: 14.0}
- {at_s: 4.5, fault: kill, target: broker-3, duration_s: 14.0}
- {at_s: 10.0, fault: power-cut, target: broker-1, duration_s: 3.0, spares_last: SPARES}
"""


def _simulated(directory: Path, *, spares: bool) -> tuple[int, RunDirectory]:
    """The exit code and the run of that plan, in simulation."""
    plan = directory / "plan.yaml"
    plan.write_text(LAST_REPLICA_STRUCK.replace("SPARES", str(spares).lower()))
    arguments = ("--runtime", "simulation", "--seed", "1", "--time-limit", "30")
    store = directory / "store"
    code = call(
        ["run", "machine-faults", *arguments, "--plan", str(plan), "--store", str(store)],
    )
    (path,) = (store / "machine-faults").iterdir()
    return code, RunDirectory.open(path)


def test_what_the_last_replica_loses_is_reported_and_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, run = _simulated(tmp_path, spares=False)
    outcome = read_outcome(run)
    assert (code, outcome.verdict) == (0, Verdict.VALID)
    known = {
        result.property
        for result in outcome.results
        if any(finding.known == "KIP-966" for finding in result.findings)
    }
    assert known >= {"lost-write", "unseen", "inconsistent-offset"}
    said = capsys.readouterr().out
    assert "Known behaviour (KIP-966), not counted in the verdict: " in said
    assert f"{len(known)} broken as known" in said.splitlines()[-1]
    assert "This is known (KIP-966)" in run.report_file.read_text()

    assert call(["check", str(run.path), "--engine", "inline", "--known", "none"]) == 1
    assert "Known behaviour (KIP-966), counted in the verdict: " in capsys.readouterr().out
    assert call(["check", str(run.path), "--engine", "inline", "--known", "all"]) == 254
    assert (
        "unknown choice of --known 'all': allowed are documented, none, suspected"
        in capsys.readouterr().err
    )


def test_the_last_replica_is_spared_unless_the_plan_says_otherwise(tmp_path: Path) -> None:
    _, run = _simulated(tmp_path, spares=True)
    lines = (run.raw / "nemesis.jsonl").read_text().splitlines()
    skipped = [event for event in map(json.loads, lines) if event["kind"] == "fault-skipped"]
    assert "no other unharmed replica in its ISR" in skipped[0]["error"]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Any run of the reference that was judged."""
    return archived(4, tmp_path)


def _outcome(*findings: Finding, count: int, keys: tuple[str, ...]) -> Outcome:
    result = Result(
        property="lost-write",
        verdict=Verdict.INVALID,
        checked=10,
        findings=findings,
        finding_count=count,
        broken_keys=keys,
    )
    return Outcome(
        verdict=Verdict.INVALID, results=(result,), events=1, engine="inline", seconds=0.0
    )


def _lost(key: str) -> Finding:
    return Finding(property="lost-write", verdict=Verdict.INVALID, key=key, sentence="Gone.")


def _listed(**changes: object) -> list[KnownBehaviour]:
    known: KnownBehaviour = KnownBehaviour(
        **{
            "reference": "KAFKA-1",
            "reason": "it is so",
            "first": (3, 3),
            "last": (3, 9),
            "properties": frozenset({"lost-write"}),
            "partitions": lambda _: frozenset({"t-0"}),
            **changes,
        }  # type: ignore[arg-type]
    )
    return [known]


def test_a_known_finding_is_marked_and_allowed(run: RunDirectory) -> None:
    outcome = marked(run, _outcome(_lost("t-0"), count=1, keys=("t-0",)), listed=_listed())
    (finding,) = outcome.results[0].findings
    assert outcome.verdict is Verdict.VALID
    assert finding.known == "KAFKA-1"
    assert finding.steps[-1] == "This is known (KAFKA-1): it is so."


def test_a_new_finding_of_the_same_property_counts_with_those_beside_it(run: RunDirectory) -> None:
    judged = _outcome(_lost("t-0"), _lost("t-1"), count=2, keys=("t-0", "t-1"))
    outcome = marked(run, judged, listed=_listed())
    assert outcome.verdict is Verdict.INVALID
    known, new = outcome.results[0].findings
    assert (known.known, known.verdict) == ("KAFKA-1", Verdict.INVALID)
    assert (new.known, new.verdict) == ("", Verdict.INVALID)


def test_findings_that_are_only_counted_have_to_be_about_known_partitions(
    run: RunDirectory,
) -> None:
    shown = _lost("t-0")
    second = _outcome(shown, count=30, keys=("t-0", "t-1"))
    assert marked(run, second, listed=_listed()).verdict is Verdict.INVALID
    there = _outcome(shown, count=30, keys=("t-0",))
    assert marked(run, there, listed=_listed()).verdict is Verdict.VALID


@pytest.mark.parametrize(
    "changes",
    [
        {"properties": frozenset({"unseen"})},
        {"first": (3, 9, 2), "last": (4, 0)},
        {"first": (3, 3), "last": (3, 8)},
        {"is_shown_by": lambda finding: "other" in finding.sentence},
        {"partitions": lambda _: frozenset()},
        {"is_documented": False},
    ],
)
def test_another_property_release_look_or_place_counts(
    run: RunDirectory, changes: dict[str, object]
) -> None:
    judged = _outcome(_lost("t-0"), count=1, keys=("t-0",))
    assert marked(run, judged, listed=_listed(**changes)).verdict is Verdict.INVALID


def test_a_suspected_bug_counts_unless_asked(run: RunDirectory) -> None:
    judged, listed = _outcome(_lost("t-0"), count=1, keys=("t-0",)), _listed(is_documented=False)
    verdicts = [marked(run, judged, allowed, listed).verdict for allowed in Allowed]
    assert verdicts == [Verdict.INVALID, Verdict.VALID, Verdict.INVALID]


def test_a_run_that_does_not_say_its_release_has_no_known_behaviour(run: RunDirectory) -> None:
    info = msgspec.structs.replace(run.read_info(), target="kafka", config={"target_options": {}})
    run.write_info(info)
    assert Evidence(run).release is None
    assert not LAST_REPLICA.holds_for(None)
    judged = _outcome(_lost("t-0"), count=1, keys=("t-0",))
    assert marked(run, judged, listed=_listed()).verdict is Verdict.INVALID


_REQUEST = (
    "[2026-01-01 00:00:00,000] ERROR [KafkaApi-1] Unexpected error handling request RequestHeader("
    "apiKey=LEADER_AND_ISR, apiVersion=7) -- LeaderAndIsrRequestData(topicStates=["
    "LeaderAndIsrPartitionState(topicName='new', partitionIndex=0, leader=3), "
    "LeaderAndIsrPartitionState(topicName='old', partitionIndex=1, leader=2)])"
)
_EXPIRED = "org.apache.zookeeper.KeeperException$SessionExpiredException: for /config/topics/new"
_NO_LOG = "org.apache.kafka.common.errors.NotLeaderOrFollowerException: Log for new-0 is not there"
_FOLLOWS = "[x] INFO [Broker id=1] Follower old-1 starts at leader epoch 4 from offset 7"
_LEADS = "[x] INFO [Broker id=1] Leader old-1 with topic id Some(a) starts at leader epoch 4"
_STARTS = "[x] INFO starting (kafka.server.KafkaServer)"


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([_REQUEST, _EXPIRED], {"new-0", "old-1"}),
        ([_REQUEST, _EXPIRED, _REQUEST, _NO_LOG], {"new-0", "old-1"}),
        ([_REQUEST, _NO_LOG], set()),  # not without the cause
        ([_REQUEST, _EXPIRED, _FOLLOWS], {"new-0"}),
        ([_REQUEST, _EXPIRED, _LEADS], {"new-0"}),
        ([_REQUEST, _EXPIRED, _STARTS], set()),
        ([_FOLLOWS, _LEADS, _STARTS], set()),
        ([_REQUEST], set()),
    ],
)
def test_the_partitions_of_failed_requests_come_from_the_log(
    lines: list[str], lost: set[str]
) -> None:
    assert without_role(lines) == lost
