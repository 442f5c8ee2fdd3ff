"""Why both cannot be: a leader's high watermark, and a later answer below it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def hw_sampled(case: Case) -> str:
    if case.events[-1].high_watermark is not None:
        return (
            "While one incarnation of a broker leads in one epoch, its high watermark only rises."
        )
    return (
        "The leader counts every member of the ISR: the member had all records below the high watermark when the ISR "
        "was read, and within the epoch its log only grows."
    )
