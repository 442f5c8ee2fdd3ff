"""Why both cannot be: a log that a broker closed in a clean stop, and as which the next process opens it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def clean_stop_keeps_logs(case: Case) -> str:
    before, after = case.events[0], case.events[-1]
    if before.log_end_offset != after.log_end_offset:
        return (
            "The mark of a clean stop says that each log was synced, so the next start does not recover the logs. A "
            "log that is marked and not synced can lose records, and the broker does not notice it."
        )
    return (
        "A stop checkpoints the high watermarks and the starts of the logs before it writes the mark. Nothing changes "
        "them until the next start."
    )
