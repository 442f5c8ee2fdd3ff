"""Why both cannot be: what clients were told and what they read."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def lost_write(case: Case) -> str:
    reader = case.events[-1].process
    return (
        "The first event shows that the record was committed at this offset. A reader receives all records in order. "
        f"{reader} read past the offset and did not receive the record, so it is lost."
    )


def unseen(case: Case) -> str:
    promise = (
        "An acknowledgement with acks=all means that all in-sync replicas have the record, so the record must "
        "survive the loss of some of them."
    )
    if case.is_undecided:
        return (
            f"{promise} These reads do not show that it is lost, because they may not have reached the end of the "
            "log."
        )
    return f"{promise} The final reads reached the end of the log and did not return the record, so it is lost."


def withheld(_: Case) -> str:
    return (
        "Below the high watermark a fetch returns at least one batch, of any size, or an error. This broker returned "
        "an empty answer again and again. A consumer at this offset waits forever, and gets no error."
    )


def stale_read(case: Case) -> str:
    if case.first_of(Kind.FINAL_READ) is not None:
        return (
            "Consumers may read only committed records, and these must stay. The log now ends below the record, so a "
            "consumer has used a record that no other client can read."
        )
    return (
        "Consumers may read only records below the high watermark. Records above it are not on all in-sync replicas "
        "yet, so an election may remove a record that a consumer has already read."
    )


def duplicate(case: Case) -> str:
    again = (
        "An idempotent producer numbers its batches. So brokers recognise a batch that is sent again, and append it "
        "only once."
    )
    if not case.is_proved:
        return (
            "A producer that got no answer sends again, so the record may be appended twice. Without an idempotent "
            "producer, that is allowed."
        )
    return f"{again} Here consumers get the record twice."


def inconsistent_offset(_: Case) -> str:
    return "Each offset belongs to one record forever. Here clients got different records for the same offset."


def dirty_read(_: Case) -> str:
    return (
        "The producer got an error which means that the record is certainly not in the log. But a consumer has read "
        "it. If the producer sends it again, consumers get it twice."
    )


def order_of_polls(case: Case) -> str:
    if case.finding.property == "poll-skip":
        return (
            "A consumer reads a log in order, and does not ask for the skipped records again. So for this consumer "
            "they are lost."
        )
    return (
        "A consumer reads a log in order and gets each record once. Here it went back, so it gets records a second "
        "time."
    )


def nonmonotonic_send(_: Case) -> str:
    return (
        "The producer sent the second record after the first had its offset, so the second must have a higher "
        "offset. Consumers get the two records in the wrong order."
    )


def earlier_incarnation_read(_: Case) -> str:
    return (
        "The records of a topic are deleted with it, and a new topic of the same name begins empty. This record "
        "survived the deletion, or was written to the wrong topic."
    )
