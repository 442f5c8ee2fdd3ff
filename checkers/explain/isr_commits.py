"""Why both cannot be: an ISR that is committed, and a high watermark that waits for a replica outside of it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def hw_follows_isr(_case: Case) -> str:
    return (
        "The high watermark is the smallest log end in the ISR. The leader knew these log ends from fetches that it "
        "had answered. When it learns of the new ISR, it must raise the high watermark in the same step "
        "(KAFKA-13091). Otherwise acknowledgements wait for a replica that is no longer in the ISR."
    )
