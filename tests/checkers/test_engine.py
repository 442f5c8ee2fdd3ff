"""The engines: every shape of check, split anywhere, on Spark and inline, gives one answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import SparkContext

from benchmarks.generate import events as generated
from benchmarks.generate import write
from nemesis.checkers.checking import check
from nemesis.checkers.framework.fold import (
    Fold,
    GlobalCheck,
    Grouped,
    PartitionedCheck,
    Results,
    Rounds,
    Scan,
    conclude,
)
from nemesis.checkers.framework.model import Finding, Outcome, Verdict
from nemesis.checkers.framework.property import Check, Property
from nemesis.checkers.framework.segment import Key, Segment, proof
from nemesis.history import buckets
from nemesis.history import ingest as ingestion
from nemesis.history.errors import DamagedHistoryError
from nemesis.history.events import Event, Kind
from nemesis.history.manifest import MANIFEST, Manifest
from nemesis.history.reader import open_history
from nemesis.history.row_group import RowGroup
from nemesis.history.spark import context, stop
from tests.checkers.cut_histories import history_of, same
from tests.checkers.histories import promised


def finding(name: str, key: str, *rows: int) -> Finding:
    return Finding(
        property=name,
        verdict=Verdict.INVALID,
        key=key,
        sentence=f"{key} is wrong",
        events=tuple(proof(row) for row in rows),
    )


class AppendsAreEven(Fold[tuple[int, list[int]]]):
    """Counts appends; finds those at odd offsets."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("appends-are-even", cls),)

    kinds = frozenset({Kind.APPEND.value})
    columns = ("offset",)

    def reduce(self, segment: Segment) -> tuple[int, list[int]]:
        odd = segment.numbers("offset") % 2 == 1
        return len(segment), segment.rows[odd].tolist()[:3]

    def combine(self, a: tuple[int, list[int]], b: tuple[int, list[int]]) -> tuple[int, list[int]]:
        return a[0] + b[0], (a[1] + b[1])[:3]

    def finish(self, summary: tuple[int, list[int]]) -> Results:
        findings = [finding(self.name, f"row {row}", row) for row in summary[1]]
        return conclude(*self.properties(), checked=summary[0], findings=findings)


class EndsGrow(Scan[dict[Key, int], list[tuple[int, int]]]):
    """Per partition and broker, an append's log end offset is the last one plus one."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("ends-grow", cls),)

    kinds = frozenset({Kind.APPEND.value})
    columns = ("topic", "partition", "log_end_offset")

    def state(self, segment: Segment) -> dict[Key, int]:
        return {
            key: int(rows.numbers("log_end_offset")[-1])
            for key, rows in segment.by("topic", "partition", "process")
        }

    def join(self, a: dict[Key, int], b: dict[Key, int]) -> dict[Key, int]:
        return a | b

    def reduce(self, segment: Segment, carry: dict[Key, int] | None) -> list[tuple[int, int]]:
        ends = dict(carry or {})
        steps = []
        for row, event in segment.events():
            key = (event.topic, event.partition, event.process)
            end = event.log_end_offset or 0
            steps.append((row, end - ends.get(key, 0)))
            ends[key] = end
        return steps

    def combine(self, a: list[tuple[int, int]], b: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return a + b

    def finish(self, summary: list[tuple[int, int]]) -> Results:
        bad = [finding(self.name, f"row {row}", row) for row, step in summary if step != 1]
        return conclude(*self.properties(), checked=len(summary), findings=bad)


class ByProcess(Grouped[tuple[int, bool]]):
    """Per process, which the file does not keep together: counts rows; are their times in order?"""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("rows-counted", cls), promised("partition-time-order", cls))

    kinds = frozenset({Kind.APPEND.value, Kind.OK.value, Kind.ZNODE.value})
    columns = ("topic", "partition")
    keys = ("process",)

    def check(self, key: Key, segment: Segment) -> tuple[int, bool]:
        times = [rows.numbers("time") for _, rows in segment.by("topic", "partition")]
        return len(segment), all((part[1:] >= part[:-1]).all() for part in times)

    def finish(self, summaries: list[tuple[Key, tuple[int, bool]]]) -> Results:
        total = sum(count for _, (count, _) in summaries)
        numbers = {str(key[0]): float(count) for key, (count, _) in summaries}
        wrong = [finding("x", str(key[0])) for key, (_, in_order) in summaries if not in_order]
        counted, in_time_order = self.properties()
        return [
            conclude(counted, checked=total, numbers=numbers),
            conclude(in_time_order, checked=total, findings=wrong),
        ]


class OffsetsSummed(PartitionedCheck[int]):
    """Per partition the sum of the offsets: at once, or of each row group and then of those above their mean."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("offsets-summed", cls),)

    kinds = frozenset({Kind.APPEND.value})
    columns = ("offset",)
    keys = ("topic", "partition")
    large = 23

    def check(self, key: Key, segment: Segment) -> int:
        return int(segment.numbers("offset").sum())

    def divide(self, key: Key, groups: Sequence[RowGroup]) -> Rounds[int]:
        sums = yield [partial(sum_of_offsets, key, group, 0) for group in groups]
        above = yield [partial(sum_of_offsets, key, group, 5) for group in groups]
        assert sum(above) < sum(sums)
        return sum(sums)

    def finish(self, summaries: list[tuple[Key, int]]) -> Results:
        sums = {f"{topic}-{partition}": float(item) for (topic, partition), item in summaries}
        return conclude(*self.properties(), checked=len(summaries), numbers=sums)


def sum_of_offsets(key: Key, group: RowGroup, least: int) -> int:
    columns = ["time", "process", "seq", "kind", *OffsetsSummed.keys, "offset"]
    rows = Segment.starting_at(group.read(columns), group.first_row).only(OffsetsSummed.kinds)
    collected = [
        part.numbers("offset") for item, part in rows.by(*OffsetsSummed.keys) if item == key
    ]
    return sum(int(offsets[offsets >= least].sum()) for offsets in collected)


class OffsetsOnce(GlobalCheck[tuple[list[int], list[int]]]):
    """No two brokers append at the same offset: counts how many did, over the whole history."""

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("offsets-once", cls),)

    kinds = frozenset({Kind.APPEND.value})
    columns = ("offset",)

    def part(self, segment: Segment) -> tuple[list[int], list[int]]:
        return segment.numbers("offset").tolist(), segment.rows.tolist()

    def judge(self, parts: list[tuple[list[int], list[int]]]) -> Results:
        offsets = [offset for part, _ in parts for offset in part]
        rows = [row for _, part in parts for row in part]
        first = dict(reversed(list(zip(offsets, rows, strict=True))))
        again = [
            finding(self.name, f"offset {offset}", first[offset], row)
            for offset, row in zip(offsets, rows, strict=True)
            if first[offset] != row
        ]
        return conclude(*self.properties(), checked=len(offsets), findings=again)


class NeverSeen(Fold[int]):
    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("never-seen", cls),)

    kinds = frozenset({"no-such-kind"})
    columns = ()

    def reduce(self, segment: Segment) -> int:
        raise AssertionError("there is nothing to reduce")

    def combine(self, a: int, b: int) -> int:
        return a + b

    def finish(self, summary: int) -> Results:
        raise AssertionError("there is nothing to finish")


class NeverSeenWhole(GlobalCheck[int]):
    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (promised("never-seen-whole", cls),)

    kinds = frozenset({"no-such-kind"})
    columns = ()

    def part(self, segment: Segment) -> int:
        raise AssertionError("there is nothing to keep")

    def judge(self, parts: list[int]) -> Results:
        raise AssertionError("there is nothing to judge")


CHECKS: tuple[Check, ...] = (
    AppendsAreEven(),
    OffsetsOnce(),
    EndsGrow(),
    ByProcess(),
    OffsetsSummed(),
    NeverSeen(),
    NeverSeenWhole(),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return check(history_of(tmp_path_factory.mktemp("whole"), list(generated(400)), []), CHECKS)


def test_every_shape_of_check_answers(whole: Outcome) -> None:
    by_name = {result.property: result for result in whole.results}
    assert by_name["ends-grow"].verdict == Verdict.VALID
    assert by_name["ends-grow"].checked == by_name["appends-are-even"].checked > 50
    assert by_name["appends-are-even"].verdict == Verdict.INVALID
    assert by_name["rows-counted"].numbers["zookeeper"] == 13.0
    assert by_name["partition-time-order"].verdict == Verdict.VALID
    assert by_name["offsets-summed"].checked == 6
    assert by_name["offsets-once"].checked == by_name["ends-grow"].checked
    assert 0 < by_name["offsets-once"].finding_count < by_name["offsets-once"].checked
    assert by_name["never-seen"].verdict == Verdict.UNKNOWN
    assert by_name["never-seen-whole"].verdict == Verdict.UNKNOWN
    assert whole.verdict == Verdict.INVALID


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(1, 420), max_size=12))
def test_no_split_into_row_groups_changes_the_answer(
    cuts: list[int], whole: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = history_of(tmp_path_factory.mktemp("cut"), list(generated(400)), cuts)
    assert same(check(directory, CHECKS)) == same(whole)


def test_keys_that_are_divided_come_to_the_same(
    whole: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition has 24 appends."""
    directory = history_of(tmp_path, list(generated(400)), [90, 200, 201, 300])
    for large in (24, 23):
        monkeypatch.setattr(OffsetsSummed, "large", large)
        assert same(check(directory, CHECKS)) == same(whole)


def test_what_was_proved_first_comes_first_whatever_partition_it_is_of(tmp_path: Path) -> None:
    events = [
        Event(
            time=time, process="broker-1", kind="append", topic="t", partition=partition, offset=1
        )
        for partition, time in enumerate((90, 50, 70))
    ]
    (result,) = check(history_of(tmp_path, events, []), [AppendsAreEven()]).results
    assert [finding.events[0]["time"] for finding in result.findings] == [50, 70, 90]


def test_findings_carry_whole_events_and_the_faults_in_force(tmp_path: Path) -> None:
    def fault(time: int, kind: Kind, number: int) -> Event:
        return Event(
            time=time,
            process="nemesis",
            kind=kind,
            fault_id=number,
            fault="pause",
            targets=[f"broker-{number}"],
        )

    odd = Event(
        time=50, process="broker-1", kind="append", topic="t", partition=0, offset=1, isr=[1, 2]
    )
    events = [
        odd,
        fault(10, Kind.FAULT_APPLIED, 1),
        fault(40, Kind.FAULT_HEALED, 1),
        fault(30, Kind.FAULT_APPLIED, 2),
        fault(60, Kind.FAULT_HEALED, 2),
        fault(45, Kind.FAULT_APPLIED, 3),
        fault(51, Kind.FAULT_APPLIED, 4),
        # It was begun before, but its effect was measured only then.
        fault(49, Kind.FAULT_INVOKE, 5),
        fault(52, Kind.FAULT_APPLIED, 5),
        fault(20, Kind.FAULT_INVOKE, 6),
        fault(21, Kind.FAULT_SKIPPED, 6),
    ]
    (result,) = check(history_of(tmp_path, events, []), [AppendsAreEven()]).results
    (only_finding,) = result.findings
    assert only_finding.faults == ("pause on broker-2", "pause on broker-3", "pause on broker-5")
    assert only_finding.events == (
        {
            "time": 50,
            "process": "broker-1",
            "kind": "append",
            "seq": 0,
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "isr": [1, 2],
        },
    )


def test_a_problem_of_the_history_makes_a_valid_verdict_unknown(tmp_path: Path) -> None:
    directory = history_of(tmp_path, list(generated(100)), [])
    assert check(directory, [EndsGrow()]).verdict == Verdict.VALID
    manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    torn = msgspec.structs.replace(manifest, problems=["broker-1.jsonl is damaged"])
    (directory / MANIFEST).write_bytes(msgspec.json.encode(torn))
    outcome = check(directory, [EndsGrow()])
    assert outcome.verdict == Verdict.UNKNOWN
    assert outcome.problems == ("broker-1.jsonl is damaged",)
    assert outcome.results[0].verdict == Verdict.VALID


def test_a_check_of_the_whole_history_needs_no_other_and_gives_one_answer(tmp_path: Path) -> None:
    alone = check(history_of(tmp_path, list(generated(400)), [37, 140]), [OffsetsOnce()])
    assert [result.property for result in alone.results] == ["offsets-once"]
    assert alone.verdict == Verdict.INVALID


def test_a_history_without_events_proves_nothing(tmp_path: Path) -> None:
    outcome = check(history_of(tmp_path, [], []), CHECKS)
    assert {result.verdict for result in outcome.results} == {Verdict.UNKNOWN}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkContext]:
    yield context("local[2]")
    stop()


@pytest.mark.e2e
@pytest.mark.usefixtures("spark")
class TestSpark:
    def test_spark_and_inline_agree(self, tmp_path: Path) -> None:
        directory = history_of(tmp_path, list(generated(400)), [37, 140, 141, 390])
        spark, inline = (check(directory, CHECKS, engine=name) for name in ("spark", "inline"))
        assert (spark.engine, inline.engine) == ("spark", "inline")
        assert same(spark) == same(inline)

    def test_spark_and_inline_ingest_the_same(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(buckets, "BUCKET_ROWS", 300)
        monkeypatch.setattr(ingestion, "FEW_BYTES", 0)
        run = write(tmp_path, 1500)
        inline = ingestion.ingest(run)
        rows = open_history(run.history).table()
        assert ingestion.ingest(run, context).events == inline.events > 1000
        assert len(open_history(run.history).manifest.files) > 3
        assert open_history(run.history).table().equals(rows)

    def test_damage_met_in_a_task_is_one_sentence(self, tmp_path: Path) -> None:
        directory = history_of(tmp_path, list(generated(400)), [])
        history = open_history(directory)
        (directory / "events-00000.parquet").write_bytes(b"PAR1 no longer PAR1")
        with pytest.raises(DamagedHistoryError, match=r"events-00000\.parquet is damaged"):
            check(history, CHECKS, engine="spark")
