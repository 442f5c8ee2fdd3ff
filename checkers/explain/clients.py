"""Why both cannot be: what clients were told and what they read."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def lost_write(case: Case) -> str:
    reader = case.events[-1].process
    return (
        "The first of them says that the record stood there, committed. A reader is given every record in turn, so "
        f"{reader}, which read past that offset and was not given it, shows that it is gone."
    )


def unseen(case: Case) -> str:
    promise = (
        "An acknowledgement under acks=all says that every in-sync replica has the record, so that it survives any "
        "of them."
    )
    if case.is_undecided:
        return f"{promise} These reads do not show that it is gone: they may not have seen the whole log."
    return f"{promise} The final readers read the log up to its end and were not given it: no client will ever be."


def withheld(_: Case) -> str:
    return (
        "Below the high watermark a fetch returns at least one batch, of any size, or an error. The broker "
        "answered that it has nothing to return. A consumer at this offset waits for ever, without an error."
    )


def stale_read(case: Case) -> str:
    if case.first_of(Kind.FINAL_READ) is not None:
        return (
            "Consumers are given only what is committed, and that stays. The log ends below the record now: "
            "somebody acted on what, for everybody else, never was."
        )
    return (
        "Consumers are given only what is below the high watermark. What is above it is not on all in-sync replicas "
        "yet, and an election may take it back from under who has read it."
    )


def duplicate(case: Case) -> str:
    again = (
        "An idempotent producer numbers what it sends, so that what it sends again is known and stands in the log "
        "once."
    )
    if not case.is_proved:
        return "Who sends again without an answer may write twice: without idempotence that is allowed."
    return f"{again} Who reads both takes one record for two."


def inconsistent_offset(_: Case) -> str:
    return (
        "An offset is given to one record for good. Who was told of the one and who was told of the other disagree "
        "about the log."
    )


def dirty_read(_: Case) -> str:
    return (
        "The producer was told for certain that the record is not in the log and may have sent it again; whoever "
        "reads it acts on what was taken back."
    )


def order_of_polls(case: Case) -> str:
    if case.finding.property == "poll-skip":
        return (
            "A consumer goes through a log in order. It will never ask for the records in between again: for it "
            "they are lost."
        )
    return (
        "A consumer goes through a log in order and is given each record once. Going back, it acts on records a "
        "second time."
    )


def nonmonotonic_send(_: Case) -> str:
    return (
        "The second was sent only after the first had its place, so it belongs behind it. Who reads the log sees "
        "the producer say things in another order than it did."
    )


def earlier_incarnation_read(_: Case) -> str:
    return (
        "With the deletion of a topic its records go, and the next topic of that name begins empty. Such a record "
        "was kept, or written to the wrong one."
    )
