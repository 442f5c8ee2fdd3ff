"""What a finding says of the file: its lines and indexes, and no times that the file does not state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import pytest

from nemesis.checkers import FOREIGN, select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Finding
from nemesis.history.events import Event
from nemesis.history.foreign.importing import read_file, write_events
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operation_order import LINE_NS
from nemesis.history.memory import history_of
from nemesis.judging.foreign import settled
from nemesis.judging.foreign_lines import located
from tests.history.foreign.reading import events_of

UNTIMED = """; of a mutex
{:type :invoke, :f :acquire, :process 0}
{:type :ok, :f :acquire, :process 0}
{:type :invoke, :f :acquire, :process 1}
{:type :ok, :f :acquire, :process 1}
"""

LOST: Final = """{:type :invoke, :f :enqueue, :value 1, :process 0}
{:type :ok, :f :enqueue, :value 1, :process 0}
{:type :invoke, :f :drain, :process 0}
{:type :ok, :f :drain, :value [], :process 0}
"""


def findings(text: str, directory: Path, workload: str = "mutex") -> tuple[Finding, ...]:
    file = directory / "history.edn"
    file.write_text(text)
    imported = write_events(read_file(file), workload, directory, directory / "clients.jsonl")
    names = Names()
    history = history_of(events_of(read_file(file), workload, names))
    outcome = settled(
        check(history, select_foreign(workload)),
        names,
        workload,
        is_doubtful=False,
        is_cut_off=False,
        may_hide_changes=False,
    )
    results = located(outcome, directory, is_timed=imported.is_timed).results
    return tuple(finding for result in results for finding in result.findings)


def in_lines(events: Iterable[Event]) -> list[Event]:
    """Return events with the times that a file without times gives them: one for each line."""
    lines = sorted(events, key=lambda event: (event.time, event.seq))
    return [
        msgspec.structs.replace(event, time=number * LINE_NS)
        for number, event in enumerate(lines, 1)
    ]


def test_lines_stand_where_the_file_has_no_times(tmp_path: Path) -> None:
    (finding,) = findings(UNTIMED, tmp_path)
    assert finding.steps[-1] == "In the file: lines 2, 3, 4, 5."
    text = " ".join([finding.sentence, *finding.steps])
    assert " ns" not in text
    assert " later" not in text
    assert [event["line"] for event in finding.events] == [2, 3, 4, 5]
    assert not any("time" in event for event in finding.events)


def test_a_step_names_the_line_at_which_something_ended(tmp_path: Path) -> None:
    (finding,) = findings(LOST, tmp_path, "queue")
    assert finding.steps[0].endswith(" at line 2.")


@pytest.mark.parametrize("workload", FOREIGN)
def test_no_finding_of_a_workload_states_a_time_that_its_file_does_not(
    workload: str, tmp_path: Path
) -> None:
    checks = select_foreign(workload)
    histories = [
        in_lines(events)
        for each in checks
        for decided in each.properties()
        for events in decided.breaks
    ]
    texts = [
        text
        for events in histories
        for result in located(check(history_of(events), checks), tmp_path, is_timed=False).results
        for finding in result.findings
        for text in (finding.sentence, *finding.steps)
    ]
    assert texts
    assert not [text for text in texts if re.search(r"\d (ns|µs|ms|s)\b", text)]


def test_times_stay_beside_lines_and_indexes(tmp_path: Path) -> None:
    lines = UNTIMED.splitlines()
    timed = [
        line.replace("}", f", :time {10 * n}, :index {n}}}") for n, line in enumerate(lines) if n
    ]
    (finding,) = findings("\n".join(timed).replace(":index 4", ":index 9"), tmp_path)
    assert "from 10 ns to 20 ns" in " ".join(finding.steps)
    assert finding.steps[-1] == (
        "In the file: lines 1 (index 1), 2 (index 2), 3 (index 3), 4 (index 9)."
    )
    assert [event["time"] for event in finding.events] == [10, 20, 30, 40]
