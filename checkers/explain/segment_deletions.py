"""Why a segment has to stay: none of the reasons to delete it is there."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def segments_deleted_by_rule(case: Case) -> str:
    del case
    return (
        "A broker may delete a segment for three reasons: it is below the start of the log, the log is large enough "
        "without it, or its records are too old. And all its records must be committed. No reason "
        "applies here, so consumers lose records."
    )
