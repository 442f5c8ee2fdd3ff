"""A history from elsewhere, judged without its files."""

from __future__ import annotations

from nemesis.checkers import select_foreign
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome
from nemesis.history.foreign.importing import events_of
from nemesis.history.foreign.names import Names
from nemesis.history.memory import history_of
from nemesis.judging.foreign import settled
from tests.history.foreign.reading import read


def judged(text: str, workload: str) -> Outcome:
    """Judge a history as the command does, without its files."""
    file, names = read(text), Names()
    events = list(events_of(file, workload, names))
    outcome = check(
        history_of(events, problems=file.problems.sentences()), select_foreign(workload)
    )
    doubt = file.problems.may_lack_operations(is_complete=file.is_complete)
    return settled(outcome, names, workload, is_doubtful=doubt)
