"""Why a segment has to stay: none of the reasons to delete it is there."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def segments_deleted_by_rule(case: Case) -> str:
    del case
    return (
        "A segment goes when it is below the start of the log, when the log is large enough without it, or when its "
        "records are old enough by the broker's clock. It never goes before it is committed."
        " One of these rules was broken, and consumers lose records."
    )
