"""Whether each producer has an epoch of its own, and is refused once another one has its transactional id."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.losses import OFFSETS_TOPIC
from nemesis.checkers.transactions.produced import (
    SEND,
    SEND_OFFSET,
    Operation,
    Produced,
    fenced_by,
)


def accepted_by_leaders(name: str, known: Produced) -> Iterator[tuple[Finding, str]]:
    """Find records and offsets that were accepted although a newer producer had been answered before they were sent.

    Beside each is the partition or the topic whose leader has to know the newer epoch.
    """
    for request in known.requests:
        event = request.event
        if event.f in (SEND, SEND_OFFSET):
            about = tp_name(event.topic, event.partition) if event.f == SEND else OFFSETS_TOPIC
            for item in _accepted_late(name, request, known):
                yield item, about


def accepted_by_coordinators(name: str, known: Produced) -> Iterator[Finding]:
    """Find the same of requests that only the coordinator decides."""
    raised = (
        init
        for inits in known.inits.values()
        for init in inits
        if init.invoked[1].producer_epoch is not None
    )
    for request in (*known.requests, *raised):
        if request.event.f not in (SEND, SEND_OFFSET):
            yield from _accepted_late(name, request, known)


def _accepted_late(name: str, request: Operation, known: Produced) -> Iterator[Finding]:
    init = fenced_by(request, known.inits)
    if init is None:
        return
    event, newer = request.invoked[1], init.event
    if newer.producer_id == event.producer_id:
        former, later = f"in epoch {event.producer_epoch}", f"in epoch {newer.producer_epoch}"
    else:
        former = f"with producer id {event.producer_id}"
        later = f"with producer id {newer.producer_id}"
    sentence = (
        f"The {event.f} of {event.process} as producer of {event.transactional_id} {former} was accepted, after "
        f"{newer.process} had become its producer {later}."
    )
    item = _finding(name, sentence, init, request)
    yield _doubtful(item, request.event.node) if known.may_repeat_addition(request) else item


def _doubtful(item: Finding, node: int | None) -> Finding:
    sentence = f"{item.sentence} Broker {node} may be a former coordinator that had the partitions already."
    return replace(item, sentence=sentence, verdict=Verdict.UNKNOWN)


def epochs_given_again(name: str, known: Produced) -> Iterator[Finding]:
    """Find producers that were answered an epoch that another one of their transactional id has, or an earlier one."""
    for transactional_id, inits in sorted(known.inits.items()):
        for index, later in enumerate(inits):
            former = next((item for item in inits[:index] if _is_not_raised(item, later)), None)
            if former is not None:
                sentence = (
                    f"{later.event.process} became the producer of {transactional_id} in epoch "
                    f"{later.event.producer_epoch}, although {former.event.process} had been given epoch "
                    f"{former.event.producer_epoch} of producer id {later.event.producer_id}."
                )
                yield finding(name, transactional_id, sentence, former.row, later.row)


def _is_not_raised(former: Operation, later: Operation) -> bool:
    """Whether two answers have one epoch, or the second request was answered an earlier epoch than the first."""
    before, after = former.event, later.event
    if before.producer_id != after.producer_id:
        return False
    fell = (after.producer_epoch or 0) < (before.producer_epoch or 0)
    return before.producer_epoch == after.producer_epoch or (fell and former.ended < later.began)


def _finding(name: str, sentence: str, init: Operation, request: Operation) -> Finding:
    key = request.event.transactional_id or ""
    return finding(name, key, sentence, init.row, request.invoked[0], request.row)
