"""Why both cannot be: a broker that writes checkpoints in each interval, and an old one."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def checkpoints_kept(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so an old checkpoint proves nothing about the broker."
    return (
        "The broker writes its checkpoints once in each interval, and has run for more than an interval since. The "
        "offset only grew meanwhile, so the file must have a larger one. A broker that is killed starts again with "
        "the offset in the file."
    )
