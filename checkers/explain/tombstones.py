"""Why both cannot be: a tombstone that stays for a time after a compaction, and one that is gone before."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def tombstones_kept(case: Case) -> str:
    promise = (
        "The first compaction that passes a tombstone sets its delete horizon: its own beginning plus "
        "delete.retention.ms. A later compaction may remove the tombstone from then on, and not before."
    )
    if len(case.events) == 1:
        return (
            f"{promise} This horizon follows from no compaction, so consumers have more or less time than "
            "is promised."
        )
    return (
        f"{promise} A consumer that read an older record of the key, and reads on within that time, does not learn "
        "that the key is deleted."
    )
