"""A history from elsewhere, judged without its files."""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.checkers import select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.cycles.models import WELL_FORMED
from nemesis.checkers.foreign import asked_properties
from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.foreign.importing import ForeignFile, without_real_time
from nemesis.history.foreign.names import Names
from nemesis.history.memory import history_of
from nemesis.judging.foreign import initial_number, settled
from nemesis.judging.judge import only
from tests.history.foreign.reading import events_of, read


def judged(
    text: str,
    workload: str,
    model: str | None = None,
    initial: str | None = None,
    anomalies: Sequence[str] = (),
) -> Outcome:
    """Judge a history as the command does, without its files."""
    return judged_file(read(text), workload, model, initial, anomalies)


def judged_file(
    file: ForeignFile,
    workload: str,
    model: str | None = None,
    initial: str | None = None,
    anomalies: Sequence[str] = (),
) -> Outcome:
    """Judge what was read of a file."""
    names = Names()
    events = list(events_of(file, workload, names))
    problems = [*file.problems.sentences(), *without_real_time(file, workload)]
    number = None if initial is None else initial_number(initial, names)
    checks = select_foreign(
        workload, None, model, has_real_time=file.has_real_time, initial=number, anomalies=anomalies
    )
    outcome = check(history_of(events, problems=problems), checks)
    if anomalies:
        outcome = only(outcome, {*asked_properties(workload, anomalies), WELL_FORMED})
    return settled(
        outcome,
        names,
        workload,
        is_doubtful=file.may_lack_operations(),
        is_cut_off=file.problems.is_cut_off(),
        may_hide_changes=file.problems.may_hide_changes(),
    )


def history(*lines: str) -> str:
    """Lines of ``type process f value ...``, with their indexes."""
    said = []
    for index, line in enumerate(lines):
        kind, process, f, value = line.split(maxsplit=3)
        said.append(
            f"{{:type :{kind}, :process {process}, :f :{f}, :value {value}, :index {index}}}"
        )
    return "\n".join(said) + "\n"


def verdict_of(text: str, workload: str) -> Verdict:
    return judged(text, workload).verdict
