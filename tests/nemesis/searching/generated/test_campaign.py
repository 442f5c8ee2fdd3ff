"""A campaign from end to end: a mutant that is found, one that is not reached, one that crashes; and going on.

These are simulated runs, seconds each.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.mutants.generated.draw import all_mutations
from nemesis.mutants.generated.mutation import Mutation
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.generated.campaign import Campaign, batch_of, with_time_limit
from nemesis.searching.generated.results import ResultFile, Status
from nemesis.searching.generated.trial import BaselineReport, Pair
from nemesis.support.errors import HarnessError
from tests.nemesis.searching.generated.records import HEADER

SCENARIO = "machine-faults"
TIME_LIMIT_S = 12.0


def mutant(module: str, function: str, operator: str, original: str) -> Mutation:
    return next(
        m
        for m in all_mutations((module,))
        if (m.function, m.operator) == (function, operator) and original in m.change.original
    )


KILLED = mutant(
    "cluster/partition", "Partition.maybe_increment_leader_hw", "skipped-effect", "log.update_high_watermark"
)  # fmt: skip
NOT_REACHED = mutant("log/cleaner", "Cleaner._build_offset_map", "comparison", "")
CRASHING = mutant("cluster/partition", "Partition.maybe_shrink_isr", "dropped-guard", "")


def campaign(folder: Path, *mutations: Mutation, jobs: int = 2) -> Campaign:
    return Campaign(
        mutations=mutations,
        scenarios={SCENARIO: with_time_limit(scenarios.load(SCENARIO), TIME_LIMIT_S)},
        first_seed=1,
        seeds=1,
        jobs=jobs,
        results=ResultFile(folder / "results.jsonl", HEADER),
        baselines=folder / "baselines",
    )


def test_a_campaign_tells_mutants_apart_and_goes_on(tmp_path: Path) -> None:
    shown: list[str] = []
    first = campaign(tmp_path, KILLED).run(lambda record: shown.append(record.name))
    assert [(record.status, bool(record.killed_by)) for record in first] == [(Status.KILLED, True)]
    again = campaign(tmp_path, KILLED, NOT_REACHED, CRASHING)
    records = again.run(lambda record: shown.append(record.name))
    assert records[0] == first[0]
    assert [r.status for r in records[1:]] == [Status.NOT_REACHED, Status.CRASHED]
    assert sorted(shown) == sorted(m.name for m in (KILLED, NOT_REACHED, CRASHING))  # each once
    assert again.run() == records
    assert records[2].runs[0].report.node_errors > 0


def test_a_single_process_examines_one_mutant_after_another(tmp_path: Path) -> None:
    others = [m for m in all_mutations(("log/cleaner",)) if m.function == NOT_REACHED.function][:5]
    records = campaign(tmp_path, *others, jobs=1).run()
    assert [record.name for record in records] == [m.name for m in others]
    assert {record.status for record in records} == {Status.NOT_REACHED}


def test_the_same_mutant_gives_the_same_record(tmp_path: Path) -> None:
    one_job, other = (
        campaign(tmp_path / name, KILLED, jobs=1).run()[0].runs[0].report for name in ("a", "b")
    )
    assert (one_job.trace_hash, one_job.reached, one_job.effective, one_job.properties) == (
        other.trace_hash, other.reached, other.effective, other.properties,
    )  # fmt: skip


def test_a_finding_of_the_unmodified_reference_stops_everything(tmp_path: Path) -> None:
    work = campaign(tmp_path, KILLED)
    path = work.baseline_file(Pair(SCENARIO, 1))
    path.parent.mkdir()
    guilty = BaselineReport(
        pair=Pair(SCENARIO, 1),
        cpu_s=1.0,
        trace_hash="",
        findings=("hw-bounded: t-0: too high",),
        doubts=(),
        lines={},
    )
    path.write_bytes(msgspec.json.encode(guilty))
    with pytest.raises(HarnessError, match="the unmodified reference has a finding"):
        work.run()


def test_batches_share_the_draw() -> None:
    mutations = all_mutations(("log/log_retention",))
    batches = [batch_of(mutations, number, 3) for number in (1, 2, 3)]
    assert sorted(m.name for batch in batches for m in batch) == sorted(m.name for m in mutations)
    assert max(map(len, batches)) - min(map(len, batches)) <= 1
