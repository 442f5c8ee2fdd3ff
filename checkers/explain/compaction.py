"""Why both cannot be: a cleaner that looks at all logs in each back-off, and a log that it should have compacted."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def compaction_runs(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a log that is not compacted proves nothing about the cleaner."
    return (
        "The topic keeps only the last record of each key, and the cleaner checks all logs after each "
        "log.cleaner.backoff.ms. After the broker was stopped, the files of this log still had more segments to "
        "compact than min.cleanable.dirty.ratio allows."
    )
