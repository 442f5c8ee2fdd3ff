"""Whether producers are refused once another one has their transactional id."""

from __future__ import annotations

from collections.abc import Iterator

from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.transactions.produced import Operation, Produced


def accepted_after_fencing(name: str, known: Produced) -> Iterator[Finding]:
    """Find requests that were accepted although they were sent after a newer producer had been answered."""
    for request in known.requests:
        event = request.event
        for init in known.inits.get(event.transactional_id or "", ()):
            newer = init.event
            if (
                init.ended < request.began
                and newer.producer_id == event.producer_id
                and (newer.producer_epoch or 0) > (event.producer_epoch or 0)
            ):
                sentence = (
                    f"The {event.f} of {event.process} as producer of {event.transactional_id} in epoch "
                    f"{event.producer_epoch} was accepted, after {newer.process} had become its producer in epoch "
                    f"{newer.producer_epoch}."
                )
                yield _finding(name, sentence, init, request)
                break


def _finding(name: str, sentence: str, init: Operation, request: Operation) -> Finding:
    key = request.event.transactional_id or ""
    return finding(name, key, sentence, init.row, request.invoked[0], request.row)
