"""Why both cannot be: an ISR that is committed, and a high watermark that waits for a replica outside of it."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def hw_follows_isr(_case: Case) -> str:
    return (
        "The high watermark is the smallest log end of the ISR. A leader receives a fetch before it answers it, so it "
        "knew these ends when it learnt of the new ISR. It computes the high watermark in the same step (KAFKA-13091): "
        "otherwise acknowledgements wait for a replica that does not count any more."
    )
