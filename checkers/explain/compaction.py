"""Why both cannot be: a cleaner that looks at all logs in each back-off, and a log that it should have compacted."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def compaction_runs(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a dirty log shows nothing about the cleaner."
    return (
        "The cleaner looks at all logs in each back-off, and the topic keeps only the last record of each key. The "
        "files of this log, read after the broker was stopped, still have more dirty segments than the ratio allows."
    )
