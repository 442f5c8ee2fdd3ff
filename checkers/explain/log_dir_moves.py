"""Why a replica has to be in another directory: a copy that takes no time but that of its bytes."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_dir_moves_end(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, an unfinished copy shows nothing about the broker."
    if case.events[0].kind == Kind.LOG_DIR_CHANGED:
        return "A broker leaves a replica where it is, unless an administrator names another directory for it."
    return (
        "The broker copies what moves as fast as its quota permits, and has had time for all of it with no fault in "
        "force. So it has ceased to copy this log."
    )
