"""A correct cluster of Apache Kafka to which something is done by hand: each deed is found, and its partition named.

The cluster is real and no fault strikes it. While it runs, a client of ZooKeeper elects a leader, as only controllers
may. Between the stop of the brokers and the final reading of their files, three other partitions lose records.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from nemesis.checkers.framework.model import Finding, Outcome, Verdict
from nemesis.judging.judge import judge
from nemesis.running.preflight import RunOptions, create_run_directory, prepare
from nemesis.running.record import FileRecord
from nemesis.running.run import Run
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.local.lifecycle import LocalLifecycle
from nemesis.runtimes.local.nodes import LocalNodes
from tests.e2e.command import SCENARIO
from tests.e2e.kafka_jars import require_jars

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TIME_LIMIT_S = 24.0
SEGMENT = "00000000000000000000.log"
BATCH_START = struct.Struct(">qi")
"""Base offset, and the number of bytes that follow these twelve."""
FEWEST_BATCHES = 6

Batches = list[bytes]


class StoppedByHand(LocalLifecycle):
    """A hand works on the files after the stop, before they are read."""

    def __init__(self, nodes: LocalNodes, work: Callable[[], None]) -> None:
        super().__init__(nodes)
        self._work = work

    async def stop(self) -> None:
        await super().stop()
        self._work()


class Hand:
    """What is done, and to which partition (``topic-partition``)."""

    elected = ""
    cut = ""
    missing_at_one = ""
    missing_at_all = ""

    def elect(self, zookeeper: str) -> None:
        """Let another replica lead a partition, past the controller."""
        client = KazooClient(zookeeper)
        client.start()
        try:
            topic = min(client.get_children("/brokers/topics"))
            path = f"/brokers/topics/{topic}/partitions/0/state"
            state = json.loads(client.get(path)[0])
            state["leader"] = next(b for b in state["isr"] if b != state["leader"])
            state["leader_epoch"] += 1
            client.set(path, json.dumps(state).encode())
            self.elected = f"{topic}-0"
        finally:
            client.stop()
            client.close()

    def take_records(self, data: Path) -> None:
        """Take records out of three partitions; the stop of a cluster that never started has none."""
        logs = {name: logs for name, logs in rich_logs(data).items() if name != self.elected}
        self.cut, self.missing_at_one, self.missing_at_all = list(logs)[:3]
        rewrite(logs[self.cut][:1], lambda batches: batches[: len(batches) // 2])
        rewrite(logs[self.missing_at_one][1:2], without_the_third)
        rewrite(logs[self.missing_at_all], without_the_third)


def rich_logs(data: Path) -> dict[str, list[Path]]:
    """Return the first segment of each of the three replicas, of partitions that have enough batches."""
    logs: defaultdict[str, list[Path]] = defaultdict(list)
    for segment in sorted(data.glob(f"broker-*/*/{SEGMENT}")):
        if len(read_batches(segment)) >= FEWEST_BATCHES:
            logs[segment.parent.name].append(segment)
    return {name: segments for name, segments in logs.items() if len(segments) == 3}


def read_batches(segment: Path) -> Batches:
    data, start, batches = segment.read_bytes(), 0, []
    while start < len(data):
        _, length = BATCH_START.unpack_from(data, start)
        batches.append(data[start : start + BATCH_START.size + length])
        start += BATCH_START.size + length
    return batches


def without_the_third(batches: Batches) -> Batches:
    return [*batches[:2], *batches[3:]]


def rewrite(segments: Sequence[Path], change: Callable[[Batches], Batches]) -> None:
    for segment in segments:
        segment.write_bytes(b"".join(change(read_batches(segment))))


@pytest.fixture(scope="module")
def worked_on(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hand, Outcome]:
    """Run the cluster once, and do all of it."""
    require_jars()
    options = RunOptions(
        scenario=SCENARIO,
        store=tmp_path_factory.mktemp("store"),
        target="kafka",
        runtime="local",
        seed=1,
        time_limit_s=TIME_LIMIT_S,
        faults="pause",
    )
    request = prepare(options)
    directory = create_run_directory(request, ["nemesis", "run"])
    runtime, hand = request.runtime(directory.path), Hand()
    assert isinstance(runtime, LocalRuntime)
    data = directory.path / "data"
    runtime.lifecycle = StoppedByHand(runtime.cluster, lambda: hand.take_records(data))
    run = Run(
        FileRecord(directory, time.monotonic_ns),
        request.scenario,
        seed=request.seed,
        plan=(),
        runtime=runtime,
        epoch_ms=time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000,
        show=None,
        on_faults_over=lambda: hand.elect(runtime.cluster.zookeeper_connect()),
    )
    asyncio.run(run.execute())
    return hand, judge(directory, engine="inline")


def findings(outcome: Outcome, name: str, partition: str) -> list[Finding]:
    """Return the certain findings of a property about a partition."""
    result = next(result for result in outcome.results if result.property == name)
    return [
        finding
        for finding in result.findings
        if finding.key == partition and finding.verdict is Verdict.INVALID
    ]


def test_a_leader_that_no_controller_elected(worked_on: tuple[Hand, Outcome]) -> None:
    hand, outcome = worked_on
    assert outcome.verdict is Verdict.INVALID
    (finding,) = findings(outcome, "stale-controller-fenced", hand.elected)
    assert f"changed the leader of {hand.elected}" in finding.sentence


def test_a_log_that_is_cut_between_two_batches(worked_on: tuple[Hand, Outcome]) -> None:
    hand, outcome = worked_on
    sentences = [item.sentence for item in findings(outcome, "final-logs", hand.cut)]
    assert any("though the running broker answered" in sentence for sentence in sentences)


def test_a_batch_that_one_replica_lacks(worked_on: tuple[Hand, Outcome]) -> None:
    hand, outcome = worked_on
    sentences = [item.sentence for item in findings(outcome, "final-logs", hand.missing_at_one)]
    assert any("In the files of broker 2" in sentence for sentence in sentences)


def test_a_batch_that_all_replicas_lack(worked_on: tuple[Hand, Outcome]) -> None:
    hand, outcome = worked_on
    sentences = [item.sentence for item in findings(outcome, "final-logs", hand.missing_at_all)]
    assert sum("In the files of broker" in sentence for sentence in sentences) == 3


def test_nothing_else_is_found(worked_on: tuple[Hand, Outcome]) -> None:
    hand, outcome = worked_on
    touched = {hand.elected, hand.cut, hand.missing_at_one, hand.missing_at_all}
    keys = {item.key for result in outcome.results for item in result.findings}
    assert keys <= touched
