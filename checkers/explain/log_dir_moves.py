"""Why a replica has to be in another directory: a copy that takes no time but that of its bytes."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_dir_moves_end(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so an unfinished copy proves nothing about the broker."
    if case.events[0].kind == Kind.LOG_DIR_CHANGED:
        return "A broker moves a replica to another directory only if an administrator has requested it."
    return (
        "The broker copies replicas as fast as its quota permits. It has had enough time without an active fault to "
        "copy all of them. So it has stopped to copy this log."
    )
