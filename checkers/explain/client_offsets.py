"""Why both cannot be: an offset that clients have seen, and a smaller one later."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def client_offsets_grow(case: Case) -> str:
    if case.events[-1].f == "earliest-offset":
        return (
            "While a broker keeps a log open, the start of the log only rises. Records that were reported as deleted "
            "cannot exist again."
        )
    if case.events[0].kind == Kind.BECOME_LEADER:
        return (
            "A leader must not answer before its high watermark has reached the start of its epoch. Records below "
            "that may be committed, and clients may have read them. For these clients the end of the partition would "
            "go back."
        )
    return (
        "While a broker leads in one epoch, its high watermark only rises. Records below the first answer are "
        "committed, and the leader keeps them."
    )
