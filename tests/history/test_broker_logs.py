"""What Kafka brokers log of their replicas, read into events. The lines have the words of Kafka 3.9.1."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Verdict
from nemesis.history.broker_logs import read_broker_log
from nemesis.history.events import Event, Kind
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.sources import ALL_SOURCES, EventSource
from nemesis.support.kafka_logging import begin_incarnation

LOGGED_ID = "hYq7ZejeSNKet6If7J0gxQ"
TOPIC_ID = "858abb65-e8de-48d2-9eb7-a21fec9d20c5"
"""The same as every other source of a history spells it."""
STATES, LOG = "state.change.logger", "kafka.log.UnifiedLog"
MANAGER, PARTITION = "kafka.log.LogManager", "kafka.cluster.Partition"
FETCHERS = "kafka.server.ReplicaFetcherManager"
OF_LOG = "[UnifiedLog partition=t-0, dir=/run/data] "

Line = tuple[str, str]
"""Logger and message."""


def created(directory: str = "/run/data/t-0") -> Line:
    return MANAGER, f"Created log for partition t-0 in {directory} with properties {{}}"


def loaded(mark: int) -> Line:
    text = (
        f"[Partition t-0 broker=1] Log loaded for partition t-0 with initial high watermark {mark}"
    )
    return PARTITION, text


def leads(epoch: int, end: int, mark: int, isr: str = "1,2") -> Line:
    text = (
        f"[Broker id=1] Leader t-0 with topic id Some({LOGGED_ID}) starts at leader epoch {epoch} from offset {end} "
        f"with partition epoch 7, high watermark {mark}, ISR [{isr}], adding replicas [] and removing replicas [] . "
        "Previous leader None and previous leader epoch was -1."
    )
    return STATES, text


def follows(epoch: int, end: int, mark: int) -> Line:
    text = (
        f"[Broker id=2] Follower t-0 starts at leader epoch {epoch} from offset {end} with partition epoch 7 and high "
        f"watermark {mark}. Current leader is 1. Previous leader Some(1) and previous leader epoch was {epoch}."
    )
    return STATES, text


def fetches() -> Line:
    state = (
        f"t-0 -> InitialFetchState(Some({LOGGED_ID}),BrokerEndPoint(id=1, host=127.0.0.1:9092),0,0)"
    )
    text = (
        f"[ReplicaFetcherManager on broker 2] Added fetcher to broker 1 for partitions Map({state})"
    )
    return FETCHERS, text


def appended(first: int, last: int, where: str = OF_LOG) -> Line:
    text = (
        f"{where}Appended message set with last offset: {last}, first offset: {first}, next offset: {last + 1}, and "
        "messages: MemoryRecords(size=90, buffer=java.nio.HeapByteBuffer[pos=0 lim=90 cap=93])"
    )
    return LOG, text


def marked(mark: int, where: str = OF_LOG) -> Line:
    return LOG, f"{where}Setting high watermark (offset={mark}, segment=[0:180])"


def write(path: Path, lines: Iterable[Line], start: int = 1_000) -> Path:
    """A file of one incarnation, a line per nanosecond."""
    path.parent.mkdir(parents=True, exist_ok=True)
    begins = {"t": start, "c": "nemesis", "m": "start", "min_insync_replicas": 2}
    numbered = enumerate(lines, start=start + 1)
    objects = [begins, *({"t": t, "c": logger, "m": message} for t, (logger, message) in numbered)]
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in objects)
    return path


def read(tmp_path: Path, *lines: Line) -> list[Event]:
    events, problems = read_broker_log(write(tmp_path / "broker-1.jsonl", lines))
    assert problems == []
    return events


def test_a_leader_and_what_its_log_goes_through(tmp_path: Path) -> None:
    lines = [created(), loaded(0), leads(3, 0, 0), appended(0, 4), marked(5), marked(5)]
    started, opened, leader, batch, mark = read(tmp_path, *lines)
    assert started.kind == Kind.BROKER_STARTED
    assert (started.time, started.incarnation, started.min_insync_replicas) == (1_000, 1_000, 2)
    assert (opened.kind, opened.log_end_offset, opened.high_watermark) == (Kind.LOG_LOADED, 0, 0)
    assert (leader.kind, leader.leader_epoch, leader.isr) == (Kind.BECOME_LEADER, 3, [1, 2])
    assert (batch.kind, batch.role, batch.leader_epoch) == (Kind.APPEND, "leader", 3)
    assert (batch.offset, batch.last_offset, batch.log_end_offset) == (0, 4, 5)
    assert (mark.kind, mark.high_watermark, mark.log_end_offset) == (Kind.HIGH_WATERMARK, 5, 5)
    assert (mark.isr, mark.maximal_isr, mark.leader_epoch) == ([1, 2], [1, 2], 3)
    replica = [opened, leader, batch, mark]
    assert {(e.topic, e.partition, e.topic_id, e.node) for e in replica} == {("t", 0, TOPIC_ID, 1)}
    assert {event.incarnation for event in replica} == {1_000}


def test_a_follower_has_the_topic_id_of_its_fetcher(tmp_path: Path) -> None:
    lines = [created(), loaded(0), follows(0, 0, 0), fetches(), appended(0, 2), marked(2)]
    _, opened, follower, batch = read(tmp_path, *lines)
    assert {event.topic_id for event in (opened, follower, batch)} == {TOPIC_ID}
    assert (follower.kind, follower.leader) == (Kind.BECOME_FOLLOWER, 1)
    assert (batch.role, batch.leader_epoch) == ("follower", None)


def test_a_replica_that_never_fetched_is_left_out(tmp_path: Path) -> None:
    events = read(tmp_path, created(), loaded(0), follows(0, 0, 0))
    assert [event.kind for event in events] == [Kind.BROKER_STARTED]


def test_a_log_is_cut_and_begins_again(tmp_path: Path) -> None:
    lines = [created(), loaded(0), fetches(), follows(0, 0, 0), appended(0, 9), marked(7)]
    cuts = [
        (LOG, f"{OF_LOG}Truncating to offset 8"),
        (LOG, f"{OF_LOG}Truncating to 8 has no effect"),
    ]
    again = (LOG, f"{OF_LOG}Truncate and start at offset 20, logStartOffset: 20")
    raised = (LOG, f"{OF_LOG}Incremented log start offset to 22 due to segment deletion")
    *_, cut, restarted, start = read(tmp_path, *lines, *cuts, again, raised)
    assert (cut.kind, cut.offset, cut.log_end_offset) == (Kind.TRUNCATE, 8, 8)
    assert (cut.high_watermark, cut.high_watermark_before) == (None, 7)
    assert (restarted.log_start_offset, restarted.log_end_offset) == (20, 20)
    assert (start.kind, start.log_start_offset, start.reason) == (
        Kind.LOG_START_OFFSET,
        22,
        "segment deletion",
    )


def test_a_new_isr_counts_from_then_on(tmp_path: Path) -> None:
    updated = (PARTITION, "[Partition t-0 broker=1] ISR updated to 1,2,3  and version updated to 9")
    text = (
        f"[Broker id=1] Skipped the become-leader state change for t-0 with topic id Some({LOGGED_ID}) and partition "
        "state X since it is already the leader with leader epoch 3. Current high watermark 1, ISR [1], adding "
        "replicas [] and removing replicas []."
    )
    lines = [created(), loaded(0), leads(3, 0, 0), appended(0, 4), updated, marked(1)]
    *_, committed, wide, narrow = read(tmp_path, *lines, (STATES, text), marked(2))
    assert (committed.kind, committed.partition_epoch) == (Kind.ISR_CHANGE_COMMITTED, 9)
    assert (wide.isr, narrow.isr) == ([1, 2, 3], [1])


def test_a_log_that_was_there_ends_where_the_broker_found_it(tmp_path: Path) -> None:
    text = (
        f"Completed load of Log(dir=/run/data/t-0, topicId={LOGGED_ID}, topic=t, partition=0, highWatermark=2, "
        "lastStableOffset=2, logStartOffset=2, logEndOffset=8) with 1 segments, local-log-start-offset 2 and "
        "log-end-offset 8 in 3ms (1/1 completed in /run/data)"
    )
    _, opened = read(tmp_path, (MANAGER, text), loaded(6))
    assert (opened.log_start_offset, opened.log_end_offset, opened.high_watermark) == (2, 8, 6)


def test_a_follower_has_what_its_former_fetcher_appended_meanwhile(tmp_path: Path) -> None:
    """Kafka reads the end of the log, the fetcher appends, and only then the change of the role is logged."""
    lines = [created(), loaded(0), fetches(), follows(0, 0, 0), appended(0, 9), follows(1, 9, 8)]
    follower = read(tmp_path, *lines)[-1]
    assert (follower.leader_epoch, follower.log_end_offset, follower.high_watermark) == (1, 10, 8)


def test_a_log_that_waits_for_its_deletion_is_not_one_of_a_replica(tmp_path: Path) -> None:
    def there(name: str, end: int) -> Line:
        text = (
            f"Completed load of Log(dir=/run/data/{name}, topicId={LOGGED_ID}, topic=t, partition=0, highWatermark=0, "
            f"lastStableOffset=0, logStartOffset=0, logEndOffset={end}) with 1 segments"
        )
        return MANAGER, text

    _, opened = read(tmp_path, there("t-0", 8), there("t-0.5b7f-delete", 3), loaded(6))
    assert opened.log_end_offset == 8
    assert len(read(tmp_path / "alone", there("t-0.5b7f-delete", 3))) == 1


def test_a_replica_moves_to_another_log_directory(tmp_path: Path) -> None:
    there = "[UnifiedLog partition=t-0, dir=/run/other] "
    moved = "The current replica is successfully replaced with the future replica for t-0"
    future = created("/run/other/t-0.5b7f-future")
    lines = [created(), loaded(0), leads(0, 0, 0), appended(0, 4), future, appended(0, 2, there)]
    lines += [appended(3, 4, there), (MANAGER, moved), appended(5, 5, there)]
    *_, before, move, after = read(tmp_path, *lines)
    assert (before.kind, before.last_offset) == (Kind.APPEND, 4)
    assert (move.kind, move.log_dir, move.log_end_offset) == (Kind.LOG_DIR_CHANGED, "/run/other", 5)
    assert after.log_end_offset == 6


def test_a_move_that_is_given_up_leaves_the_replica_where_it_is(tmp_path: Path) -> None:
    """The target of the move has changed: Kafka deletes the second log, and goes on with the first one."""
    future = created("/run/other/t-0.5b7f-future")
    given_up = "Log for partition t-0 is renamed to /run/other/t-0.5b7f-delete and is scheduled for deletion"
    lines = [created(), loaded(0), leads(0, 0, 0), appended(0, 4), future, (MANAGER, given_up)]
    *_, before, after = read(tmp_path, *lines, appended(5, 6))
    assert (before.log_end_offset, after.log_end_offset) == (5, 7)


def test_the_next_topic_of_a_name_is_another_one(tmp_path: Path) -> None:
    path = "/run/data/t-0.5b7f-delete"
    deleted = (MANAGER, f"Log for partition t-0 is renamed to {path} and is scheduled for deletion")
    lines = [created(), loaded(0), leads(4, 0, 0), deleted, created(), loaded(0), follows(0, 0, 0)]
    second = (FETCHERS, fetches()[1].replace(LOGGED_ID, "A" * 22))
    *_, stopped, opened, follower = read(tmp_path, *lines, second)
    assert (stopped.kind, stopped.step, stopped.topic_id) == (
        Kind.REPLICA_STOPPED,
        "delete",
        TOPIC_ID,
    )
    assert {opened.topic_id, follower.topic_id} == {"00000000-0000-0000-0000-000000000000"}


def test_a_line_that_a_killed_broker_left_torn_costs_only_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "broker-1.jsonl", [created(), loaded(0), leads(0, 0, 0)])
    with path.open("a") as file:
        file.write('{"t":1005,"c":"kafka.log.Uni')
    assert read_broker_log(path)[1] == []
    begin_incarnation(path, {"min.insync.replicas": "2"})
    events, problems = read_broker_log(path)
    assert problems == []
    kinds = [event.kind for event in events]
    assert kinds.count(Kind.BROKER_STARTED) == 2
    assert events[-1].unclean_leader_election_enable is False


def test_a_damaged_file_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "broker-1.jsonl", [created()])
    with path.open("a") as file:
        file.write('{"t":1005,"c":"kafka.l\n{"t":1006,"c":"x","m":"y"}\n')
    assert read_broker_log(path)[1] == [f"{path} is damaged in line 3"]


@pytest.mark.parametrize(
    "line",
    [
        (STATES, "[Broker id=1] Leader t-0 starts at epoch 5 of broker 5"),
        (STATES, "[Broker id=1] Follower t-0 newly starts at 7"),
        leads(0, 0, 0),
        follows(0, 0, 0),
    ],
)
def test_a_role_in_other_words_or_without_a_log_is_a_problem(tmp_path: Path, line: Line) -> None:
    events, problems = read_broker_log(write(tmp_path / "broker-1.jsonl", [line]))
    assert len(problems) == 1
    assert [event.kind for event in events] == [Kind.BROKER_STARTED]


def cluster_run(tmp_path: Path, followers_end: int) -> RunDirectory:
    """A leader that sets high watermark 5, and a member of its ISR whose log ends here."""
    observes = (EventSource.BROKER_LOGS, EventSource.FAULTS)
    info = RunInfo(scenario="s", seed=1, brokers=2, zookeepers=0, observes=observes)
    run = RunDirectory.create(tmp_path, info)
    leader = [created(), loaded(0), leads(0, 0, 0), appended(0, 4)]
    write(run.raw_file("broker-1"), [*leader, *[("x", "y")] * 9, marked(5)])
    end = appended(0, followers_end - 1)
    write(run.raw_file("broker-2"), [created(), loaded(0), fetches(), follows(0, 0, 0), end])
    return run


@pytest.mark.parametrize(("end", "verdict"), [(5, Verdict.VALID), (4, Verdict.INVALID)])
def test_high_watermarks_are_judged(tmp_path: Path, end: int, verdict: Verdict) -> None:
    run = cluster_run(tmp_path, end)
    assert ingest(run).problems == ()
    observed = run.read_info().observes
    outcome = check(open_history(run.history), select(["hw-bounded"]), observed=observed)
    (result,) = outcome.results
    assert (result.verdict, result.checked) == (verdict, 1)
    assert result.in_part_without == (EventSource.TRACES,)
    assert not any("None" in step for finding in result.findings for step in finding.steps)


def state_of(leader: int) -> Event:
    """The partition's first state in ZooKeeper's log, with this leader in leader epoch 0."""
    return Event(
        time=1_000,
        process="zookeeper",
        kind=Kind.ZNODE,
        seq=1,
        zxid=1,
        zk_op="create",
        zk_version=0,
        path="/brokers/topics/t/partitions/0/state",
        topic="t",
        topic_id=TOPIC_ID,
        partition=0,
        leader=leader,
        leader_epoch=0,
        isr=[1, 2],
    )


@pytest.mark.parametrize("metadata", [EventSource.METADATA_LOG, EventSource.QUORUM_LOG])
@pytest.mark.parametrize(("leader", "verdict"), [(1, Verdict.VALID), (2, Verdict.INVALID)])
def test_leaders_are_compared_with_the_log_of_metadata(
    tmp_path: Path, metadata: EventSource, leader: int, verdict: Verdict
) -> None:
    run = cluster_run(tmp_path, 5)
    with run.raw_file("zookeeper").open("wb") as file:
        file.write(msgspec.json.encode(state_of(leader)) + b"\n")
    assert ingest(run).problems == ()
    observed = {*run.read_info().observes, metadata}
    outcome = check(open_history(run.history), select(["one-leader-per-epoch"]), observed=observed)
    (result,) = outcome.results
    assert result.verdict is verdict


def test_a_broker_without_a_log_is_a_problem(tmp_path: Path) -> None:
    run = cluster_run(tmp_path, 5)
    run.raw_file("broker-2").unlink()
    (problem,) = ingest(run).problems
    assert "broker-2.jsonl is missing: nothing is known of what broker-2 did" in problem


def test_the_logs_of_brokers_are_no_source_of_a_target_that_traces() -> None:
    assert EventSource.BROKER_LOGS not in ALL_SOURCES
