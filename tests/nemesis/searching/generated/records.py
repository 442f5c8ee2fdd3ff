"""Records of mutants for tests of scores and pages."""

from __future__ import annotations

from nemesis.searching.generated.results import Header, MutantRecord, Status, TrialRecord
from nemesis.searching.generated.trial import TrialReport

HEADER = Header(
    draw_seed=1,
    modules=("log/*",),
    scenarios=("topics",),
    seeds=5,
    first_seed=1,
    time_limit_s=None,
    code="c0de",
)


def record(
    name: str,
    status: Status,
    *properties: str,
    operator: str = "boundary",
    module: str = "log/log",
) -> MutantRecord:
    report = TrialReport(reached=1, effective=1, trace_hash="h", properties=properties)
    run = TrialRecord(scenario="topics", seed=1, outcome=status, report=report)
    return MutantRecord(
        name=name,
        operator=operator,
        module=module,
        original="a < b",
        mutant="a <= b",
        status=status,
        runs=(run,),
    )
