"""Why both cannot be: a leader's high watermark, and a later answer below it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def hw_sampled(case: Case) -> str:
    if case.events[-1].high_watermark is not None:
        return "While one process of a broker leads in one epoch, its high watermark only rises."
    return (
        "The leader raises its high watermark only when each member of the ISR has the records below it. Within the "
        "epoch the member's log only grows, so it must still have them."
    )
