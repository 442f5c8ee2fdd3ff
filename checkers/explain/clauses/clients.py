"""What clients asked and were answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import of
from nemesis.checkers.explain.foreign_operations import client, error
from nemesis.checkers.explain.producer_requests import transaction, transaction_begun
from nemesis.checkers.explain.words import brokers, counted, listed
from nemesis.checkers.framework.event_list import succeeded
from nemesis.history.events import Event, Kind

_MAX_READ: Final = 8
_OF_OFFSETS = ("earliest-offset", "latest-offset", "offset-by-time")
"""Of more offsets than this, a clause has the first and the last."""


def _in_group(event: Event, *, by: str = "") -> str:
    """The request of a member of a group; ``by`` names the member where the sentence does not."""
    request = event.f or "a request"
    if event.f == "commit-offset":
        request = f"commit of offset {event.offset} of {of(event)} (commit {event.value})"
    elif event.f == "fetch-offset":
        request = f"question for the committed offset of {of(event)}"
    generation = f" in generation {event.generation}" if event.generation is not None else ""
    return f"the {request}{by}{generation} of group {event.group}"


def _group_answer(event: Event) -> str:
    if event.f == "join-group":
        answer = f"is in generation {event.generation} of group {event.group} as {event.member}"
        return f"broker {event.node} answered {event.process} that it {answer}"
    if event.f == "fetch-offset":
        offset = "no offset" if event.offset == -1 else f"offset {event.offset}"
        number = "" if event.offset == -1 else f" (commit {event.value})"
        answer = f"{offset} of {of(event)} is committed in group {event.group}{number}"
        return f"broker {event.node} answered {event.process} that {answer}"
    return f"broker {event.node} accepted {_in_group(event, by=_by(event))}"


def _by(event: Event) -> str:
    return f" of {event.process}"


def _assigned(event: Event) -> str:
    where = f"in generation {event.generation} of group {event.group}"
    did = "was assigned" if event.kind == Kind.ASSIGNED else "gave up"
    return f"{event.process} {did} {of(event)} {where} as {event.member}"


def _invoked(event: Event) -> str:
    if event.f == "send":
        within = "" if event.transaction is None else f" in {transaction(event)}"
        return f"{client(event)} sent value {event.value} to {of(event)}{within}"
    if event.group is not None:
        return f"{event.process} sent broker {event.node} {_in_group(event)}"
    return f"{client(event)} requested {_operation(event)}"


def _ok(event: Event) -> str:
    if event.group is not None:
        return _group_answer(event)
    if event.f == "send":
        position = f"offset {event.offset} of {of(event)}"
        return f"{client(event)} received the answer that value {event.value} is at {position}"
    if event.f == "poll":
        where = "" if event.offset is None else f" from {event.offset}"
        return f"{client(event)} polled {of(event)}{where} and received {_read(event)}"
    if event.f == "log-start":
        return f"{client(event)} received the answer that {of(event)} starts at {event.log_start_offset}"
    if event.f in ("earliest-offset", "latest-offset"):
        answer = f"the {event.f} of {of(event)} is {event.offset}"
        return f"broker {event.node} answered {client(event)}{_stated(event)} that {answer}"
    if event.f == "epoch-end":
        answer = f"leader epoch {event.leader_epoch} of {of(event)} ends at {event.offset}"
        return f"broker {event.node} answered {client(event)} that {answer}"
    if event.f == "describe":
        return (
            f"{client(event)} received the answer that {of(event)} is on {brokers(event.replicas)}"
        )
    return f"{client(event)} received the answer that {_operation(event)} had succeeded"


def _read(event: Event) -> str:
    read_offsets = event.offsets or []
    if not read_offsets:
        if event.log_start_offset is None:
            return "nothing"
        stated = f"high watermark {event.high_watermark}, log start {event.log_start_offset}"
        return f"nothing from broker {event.node} ({stated})"
    if len(read_offsets) > _MAX_READ:
        return f"{len(read_offsets)} records, offsets {read_offsets[0]} to {read_offsets[-1]}"
    word = "offset" if len(read_offsets) == 1 else "offsets"
    return f"{word} {listed(read_offsets)} (value{'s' * (len(read_offsets) > 1)} {listed(event.values or [])})"


def _failed(event: Event) -> str:
    if event.f == "send":
        return f"the send of value {event.value} to {of(event)} by {client(event)} certainly failed{error(event)}"
    if event.group is not None:
        return f"{_in_group(event, by=_by(event))} was refused{error(event)}"
    return f"{_operation(event)} by {client(event)} failed{error(event)}"


def _unknown(event: Event) -> str:
    if event.group is not None:
        return f"the outcome of {_in_group(event, by=_by(event))} is unknown{error(event)}"
    if event.f == "send":
        return (
            f"the outcome of the send of value {event.value} to {of(event)} by {client(event)} is "
            f"unknown{error(event)}"
        )
    return f"the outcome of {_operation(event)} by {client(event)} is unknown{error(event)}"


def _stated(event: Event) -> str:
    """The leader epoch that a query of an offset states."""
    return "" if event.leader_epoch is None else f" in leader epoch {event.leader_epoch}"


def _operation(event: Event) -> str:
    argument = ""
    if event.partition_count is not None:
        argument = f" ({counted(event.partition_count, 'partition')})"
    elif event.value is not None:
        argument = f" (value {event.value})"
    elif event.values is not None and len(event.values) <= _MAX_READ:
        argument = f" (values {listed(event.values)})"
    elif event.f in _OF_OFFSETS and event.leader_epoch is not None:
        argument = f" from broker {event.node}{_stated(event)}"
    target = f" to {brokers(event.replicas)}" if event.replicas is not None else ""
    return f"{event.f} of {of(event)}{argument}{target}"


def _final_read(event: Event) -> str:
    how = "" if succeeded(event) else f", and ended with {event.error}"
    return (
        f"the final reader {event.process} read {of(event)} up to offset {event.offset}, with high watermark "
        f"{event.high_watermark}{how}"
    )


def _fetch_received(event: Event) -> str:
    epoch = event.fetch_epoch or 0
    request = f"fetch {epoch} in session {event.fetch_session}" if epoch > 0 else "a full fetch"
    names = f"asks for {_named(event.asked)}"
    if event.forgotten:
        names += f" and removes {_named(event.forgotten)}"
    answer = f"names {_named(event.answered)}" if succeeded(event) else f"is {event.error}"
    if event.failed:
        answer += f", with an error of {_named(event.failed)}"
    return f"{client(event)} sent broker {event.node} {request}, which {names}, and the answer {answer}"


def _named(partitions: list[str] | None) -> str:
    return ", ".join(partitions) if partitions else "no partition"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.INVOKE: _invoked,
        Kind.OK: _ok,
        Kind.FAIL: _failed,
        Kind.INFO: _unknown,
        Kind.FINAL_READ: _final_read,
        Kind.FETCH_RECEIVED: _fetch_received,
        Kind.TRANSACTION_BEGUN: transaction_begun,
        Kind.ASSIGNED: _assigned,
        Kind.REVOKED: _assigned,
    }
)
