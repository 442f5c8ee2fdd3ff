"""Known behaviour of Kafka differs from new findings by evidence, and is reported apart."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.cli.app import call
from nemesis.history.ingest import ingest
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.judge import read_outcome
from nemesis.judging.known.behaviour import AppliedFault, Evidence, KnownBehaviour
from nemesis.judging.known.last_replica import LAST_REPLICA
from nemesis.judging.known.lost_leader_and_isr import LOST_LEADER_AND_ISR, without_role
from nemesis.judging.known.marking import Allowed, marked
from nemesis.searching.replay import replay
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
    assert f"{len(known)} broken by known behaviour" in said.splitlines()[-1]
    page = run.report_file.read_text()
    assert "This is known (KIP-966)" in page
    assert (
        f"properties held over {outcome.events:,} events, {len(known)} are broken by known behaviour."
        in page
    )
    assert f"All {len(outcome.results)} properties held" not in page
    assert replay(run).verdict is Verdict.VALID

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


def _outcome(*findings: Finding, unlisted: tuple[Finding, ...] = (), counted: int = 0) -> Outcome:
    """Of some that are listed, some that are not, and others that are only counted."""
    result = Result(
        property="lost-write",
        verdict=Verdict.INVALID,
        checked=10,
        findings=findings,
        finding_count=len(findings) + len(unlisted) + counted,
        unlisted=unlisted,
    )
    return Outcome(
        verdict=Verdict.INVALID, results=(result,), events=1, engine="inline", seconds=0.0
    )


def _lost(key: str, verdict: Verdict = Verdict.INVALID) -> Finding:
    return Finding(property="lost-write", verdict=verdict, key=key, sentence="Gone.")


def _listed(**changes: object) -> list[KnownBehaviour]:
    known: KnownBehaviour = KnownBehaviour(
        **{
            "reference": "KAFKA-1",
            "reason": "it is so",
            "first": (3, 3),
            "last": (3, 9),
            "properties": frozenset({"lost-write"}),
            "test": lambda _: lambda finding: finding.key == "t-0",
            **changes,
        }  # type: ignore[arg-type]
    )
    return [known]


def test_a_known_finding_is_marked_and_allowed(run: RunDirectory) -> None:
    outcome = marked(run, _outcome(_lost("t-0")), listed=_listed())
    (finding,) = outcome.results[0].findings
    assert outcome.verdict is Verdict.VALID
    assert finding.known == "KAFKA-1"
    assert finding.steps[-1] == "This is known (KAFKA-1): it is so."


def test_a_new_finding_of_the_same_property_counts_with_those_beside_it(run: RunDirectory) -> None:
    outcome = marked(run, _outcome(_lost("t-0"), _lost("t-1")), listed=_listed())
    assert outcome.verdict is Verdict.INVALID
    known, new = outcome.results[0].findings
    assert (known.known, known.verdict) == ("KAFKA-1", Verdict.INVALID)
    assert (new.known, new.verdict) == ("", Verdict.INVALID)


@pytest.mark.parametrize(
    ("unlisted", "counted", "verdict"),
    [
        ([_lost("t-0")], 0, Verdict.VALID),
        ([_lost("t-1")], 0, Verdict.INVALID),
        ([_lost("t-0")], 1, Verdict.INVALID),
        ([_lost("t-1", Verdict.UNKNOWN)], 0, Verdict.UNKNOWN),
        ([_lost("t-1", Verdict.VALID)], 0, Verdict.VALID),
    ],
)
def test_findings_that_are_not_listed_are_tested_too(
    run: RunDirectory, unlisted: list[Finding], counted: int, verdict: Verdict
) -> None:
    judged = _outcome(_lost("t-0"), unlisted=tuple(unlisted), counted=counted)
    assert marked(run, judged, listed=_listed()).verdict is verdict


@pytest.mark.parametrize(
    "changes",
    [
        {"properties": frozenset({"unseen"})},
        {"first": (3, 9, 2), "last": (4, 0)},
        {"first": (3, 3), "last": (3, 8)},
        {"test": lambda _: lambda _: False},
        {"is_documented": False},
    ],
)
def test_another_property_or_release_or_no_evidence_counts(
    run: RunDirectory, changes: dict[str, object]
) -> None:
    judged = _outcome(_lost("t-0"))
    assert marked(run, judged, listed=_listed(**changes)).verdict is Verdict.INVALID


def test_a_suspected_bug_counts_unless_asked(run: RunDirectory) -> None:
    judged, listed = _outcome(_lost("t-0")), _listed(is_documented=False)
    verdicts = [marked(run, judged, allowed, listed).verdict for allowed in Allowed]
    assert verdicts == [Verdict.INVALID, Verdict.VALID, Verdict.INVALID]


def test_a_run_that_does_not_say_its_release_has_no_known_behaviour(run: RunDirectory) -> None:
    info = msgspec.structs.replace(run.read_info(), target="kafka", config={"target_options": {}})
    run.write_info(info)
    assert Evidence(run).release is None
    assert not LAST_REPLICA.holds_for(None)
    judged = _outcome(_lost("t-0"))
    assert marked(run, judged, listed=_listed()).verdict is Verdict.INVALID


_BEGAN, _APPLIED = 100, 110
_STRUCK = AppliedFault(
    _BEGAN,
    _APPLIED,
    {"last_in_isr": ["t-0"]},
    {"broker-1": {"lost_bytes": 7}},
)


def _dated(property_name: str, *times: int, sentence: str = "Gone.", key: str = "t-0") -> Finding:
    return Finding(
        property=property_name,
        verdict=Verdict.INVALID,
        key=key,
        sentence=sentence,
        events=tuple({"time": time} for time in times),
    )


def _is_last_replica(
    run: RunDirectory,
    finding: Finding,
    fault: AppliedFault = _STRUCK,
    deleted: frozenset[str] = frozenset(),
) -> bool:
    evidence = Evidence(run)
    evidence.__dict__.update(applied_faults=(fault,), deleted_topics=deleted)
    return LAST_REPLICA.test(evidence)(finding)


@pytest.mark.parametrize(
    ("finding", "is_instance"),
    [
        (_dated("unseen", 50, 200), True),
        (_dated("unseen", _APPLIED, 200), True),
        (_dated("unseen", 50, 200, key="t-1"), False),
        (_dated("unseen", 120, 200), False),  # acknowledged after the loss
        (_dated("unseen", 50, 99), False),  # gone before the loss
        (_dated("unseen", -1, -1), False),
        (_dated("nonmonotonic-poll", 120), False),  # within one answer
        (_dated("final-logs", 300, 300), True),
        (_dated("final-logs", 50, 99), False),
        (_dated("final-logs", -1), False),
        (_dated("stale-read-above-hw", 50, 200, sentence="7 was read and vanished: x."), True),
        (_dated("stale-read-above-hw", 50, 200, sentence="c was given offset 1 of t-0"), False),
        (_dated("client-offsets-grow", 50, 200, sentence="the latest-offset of t-0 is 1"), True),
        (_dated("client-offsets-grow", 50, 200, sentence="the earliest-offset of t-0"), False),
    ],
)
def test_a_loss_of_the_last_replica_stands_between_what_a_finding_compares(
    run: RunDirectory, finding: Finding, is_instance: bool
) -> None:
    assert _is_last_replica(run, finding) is is_instance


def test_files_of_a_topic_that_was_made_again_are_not_compared_with_the_loss(
    run: RunDirectory,
) -> None:
    files = _dated("final-logs", 300, 300)
    assert not _is_last_replica(run, files, deleted=frozenset({"t"}))
    assert _is_last_replica(run, files, deleted=frozenset({"u"}))
    assert _is_last_replica(run, _dated("unseen", 50, 200), deleted=frozenset({"t"}))


@pytest.mark.parametrize(
    ("intent", "measured", "is_instance"),
    [
        ({"last_in_isr": ["t-0"]}, {"broker-1": {"lost_bytes": 0, "lost_names": 1}}, True),
        ({"last_in_isr": ["t-0"]}, {"broker-1": {"damaged": ["t-0/0.log"]}}, True),
        ({"last_in_isr": ["t-0"]}, {"broker-1": {"lost_bytes": 0, "lost_names": 0}}, False),
        ({"last_in_isr": ["t-0"]}, {"broker-1": True}, False),
        ({"last_in_isr": ["t-0"]}, {}, False),
        ({}, {"broker-1": {"lost_bytes": 7}}, False),
    ],
)
def test_a_fault_that_took_nothing_excuses_nothing(
    run: RunDirectory, intent: dict[str, object], measured: dict[str, object], is_instance: bool
) -> None:
    fault = AppliedFault(_BEGAN, _APPLIED, intent, measured)
    assert _is_last_replica(run, _dated("unseen", 50, 200), fault) is is_instance


@pytest.mark.parametrize("effect", ["measured", "none", None])
def test_a_fault_is_evidence_only_if_its_effect_was_measured(
    tmp_path: Path, effect: str | None
) -> None:
    run = archived(4, tmp_path)
    about: dict[str, object] = {"process": "nemesis", "fault": "power-cut", "fault_id": 99}
    begun = {**about, "time": 1, "kind": "fault-invoke", "detail": '{"last_in_isr": ["t-0"]}'}
    applied = {**about, "time": 2, "kind": "fault-applied", "effect": effect, "detail": "{}"}
    events = [begun] if effect is None else [begun, applied]
    with (run.raw / "nemesis.jsonl").open("a") as raw:
        for number, event in enumerate(events):
            raw.write(json.dumps({**event, "seq": 10_000 + number}) + "\n")
    ingest(run)
    faults = [fault for fault in Evidence(run).applied_faults if "last_in_isr" in fault.intent]
    expected = [AppliedFault(1, 2, {"last_in_isr": ["t-0"]}, {})]
    assert faults == (expected if effect == "measured" else [])


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


@pytest.mark.parametrize(
    ("sentence", "is_instance"),
    [
        (
            (
                "After the faults, old-1 did not recover: its ISR is [2, 3], its replicas are [1, 2, 3] (failed "
                "check: isr)."
            ),
            True,
        ),
        (
            (
                "After the faults, old-1 did not recover: its ISR is [1, 3], its replicas are [1, 2, 3] (failed "
                "check: isr)."
            ),
            False,
        ),
        (
            (
                "After the faults, old-1 did not recover: its ISR is [3], its replicas are [1, 2, 3] (failed check: "
                "isr)."
            ),
            False,
        ),
        (
            (
                "After the faults, old-1 did not recover: its ISR is [1, 2], its replicas are [1, 2] (failed check: "
                "isr)."
            ),
            False,
        ),
        ("At the end broker-1, a replica of old-1, has no log of it.", True),
        ("At the end broker-2, a replica of old-1, has no log of it.", False),
        (
            "After the faults, old-1 did not recover in time: no leader (failed check: leaders).",
            False,
        ),
    ],
)
def test_only_the_broker_whose_request_failed_is_excused(
    run: RunDirectory, sentence: str, is_instance: bool
) -> None:
    logs = run.path / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "broker-1.log").write_text(f"{_REQUEST}\n{_EXPIRED}\n")
    (logs / "broker-2.log").write_text(f"{_REQUEST}\n{_EXPIRED}\n{_STARTS}\n")
    is_known = LOST_LEADER_AND_ISR.test(Evidence(run))
    shown = Finding(property="convergence", verdict=Verdict.INVALID, key="old-1", sentence=sentence)
    assert is_known(shown) is is_instance
    assert not is_known(msgspec.structs.replace(shown, key="other-0"))
