"""A history from elsewhere, judged without its files."""

from __future__ import annotations

from nemesis.checkers import select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome
from nemesis.history.foreign.importing import without_real_time
from nemesis.history.foreign.names import Names
from nemesis.history.memory import history_of
from nemesis.judging.foreign import initial_number, settled
from tests.history.foreign.reading import events_of, read


def judged(
    text: str, workload: str, model: str | None = None, initial: str | None = None
) -> Outcome:
    """Judge a history as the command does, without its files."""
    file, names = read(text), Names()
    events = list(events_of(file, workload, names))
    problems = [*file.problems.sentences(), *without_real_time(file, workload)]
    number = None if initial is None else initial_number(initial, names)
    checks = select_foreign(workload, None, model, has_real_time=file.has_real_time, initial=number)
    outcome = check(history_of(events, problems=problems), checks)
    return settled(outcome, names, workload, is_doubtful=file.may_lack_operations())
