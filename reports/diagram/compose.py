"""Events to items: what belongs together becomes one message, the rest are notes.

* A control request: sent by the controller, handled by the broker with the same API, controller epoch and broker epoch.
  Nothing in a history numbers the requests, so of equal ones the first sent is taken for the first handled.
* A write of a znode: attempted by a broker, with its outcome; and what ZooKeeper's log says of it.
* A record: sent by a client, appended by the leader, acknowledged, answered. The same record on its way to a follower.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from nemesis.history.events import Event, Kind
from nemesis.reports.diagram.gather import AFTER_NS, WORDING, ProofTimes
from nemesis.reports.diagram.items import (
    CLIENTS,
    ZOOKEEPER,
    Bar,
    Identity,
    Item,
    Rank,
    Stop,
    Tone,
    identity,
)
from nemesis.reports.diagram.say import say

Timed = tuple[int, Event]

UNDERWAY_NS: Final = AFTER_NS
"""What was sent this shortly before the last event looked at may have arrived after it, and is not drawn."""

UPDATE_METADATA: Final = "UpdateMetadata"

_TURNS: Final = frozenset(
    {
        *(Kind.BROKER_STARTED, Kind.BROKER_REGISTERED, Kind.SESSION_STATE, Kind.SESSION_CLOSED),
        *(Kind.CONTROLLER_ELECTED, Kind.CONTROLLER_RESIGNED, Kind.ZNODE),
        *(Kind.FAULT_APPLIED, Kind.FAULT_HEALED),
    }
)
_ENDS: Final = {Kind.OK: Tone.GOOD, Kind.FAIL: Tone.BAD, Kind.INFO: Tone.BAD}
_SUBJECTS: Final = frozenset(
    {
        *(Kind.LEADER_ELECTED, Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.TRUNCATE),
        *(Kind.ISR_CHANGE_PROPOSED, Kind.ISR_CHANGE_COMMITTED),
    }
)
_NOTES: Final = frozenset(
    {
        *(_TURNS | _SUBJECTS),
        *(Kind.CONTROLLER_FAILOVER, Kind.LOG_LOADED, Kind.REPLICA_STOPPED, Kind.HIGH_WATERMARK),
    }
)


def compose(events: Sequence[Timed], instants: ProofTimes) -> tuple[list[Item], list[Bar]]:
    """Return the items in order of their starts, and the faults as bars."""
    proof = instants.identities
    items = [
        *_control_requests(events, instants),
        *_znode_writes(events, instants),
        *_records(events),
        *_notes(events, instants),
    ]
    drawn = {stop.event for item in items for stop in item.stops if stop.event is not None}
    alone = _alone(events, proof - drawn)
    marked = [_marked(item, proof) for item in (*items, *alone)]
    return sorted(marked, key=lambda item: item.start), list(_bars(events))


def column_of(event: Event) -> str:
    """Return the column of the process that recorded the event."""
    if event.process in ("zookeeper", "quorum"):
        return ZOOKEEPER
    if event.process.startswith("broker-"):
        return event.process
    if event.targets:
        return column_of_node(event.targets[0])
    return CLIENTS


def column_of_node(node: str) -> str:
    """Return the column of a node by its name."""
    kind = node.split("-", maxsplit=1)[0]
    return {"broker": node, "zookeeper": ZOOKEEPER, "controller": ZOOKEEPER}.get(kind, CLIENTS)


def _stop(time: int, event: Event, text: str = "", tone: Tone = Tone.PLAIN) -> Stop:
    return Stop(time, column_of(event), text, tone, identity(event))


def _control_requests(events: Sequence[Timed], instants: ProofTimes) -> Iterator[Item]:
    waiting: dict[tuple[object, ...], deque[Timed]] = defaultdict(deque)
    for time, event in events:
        if event.kind == Kind.CONTROL_REQUEST_SENT:
            waiting[_request(event, event.node, event.peer)].append((time, event))
        elif event.kind == Kind.CONTROL_REQUEST_HANDLED:
            arrival = _stop(time, event, say(event), _tone(event.error))
            if sent := waiting[_request(event, event.peer, event.node)]:
                begin = sent.popleft()
                yield _request_item(begin[1], [_departure(begin), arrival], instants)
            else:
                origin = Stop(time, f"broker-{event.peer}", shares_row=True)
                yield _request_item(event, [origin, arrival], instants)
    for begin in (departure for left in waiting.values() for departure in left):
        if begin[0] < instants.end - UNDERWAY_NS:
            lost = _request_item(begin[1], [_departure(begin)], instants)
            yield replace(lost, lost_to=f"broker-{begin[1].peer}")


def _request(event: Event, controller: int | None, broker: int | None) -> tuple[object, ...]:
    return (event.api, controller, broker, event.controller_epoch, event.broker_epoch)


def _departure(sent: Timed) -> Stop:
    return _stop(*sent, say(sent[1]))


def _request_item(event: Event, stops: Sequence[Stop], instants: ProofTimes) -> Item:
    ends = (event.node, event.peer)
    burst = ("request", event.kind, event.api, event.controller_epoch, len(stops))
    if event.api == UPDATE_METADATA and len(stops) > 1:
        # Every broker gets one whenever anything changes, and none changes a log: a burst of them is one.
        return Item(tuple(stops), Rank.DATA, event.controller_epoch, burst=burst)
    return Item(
        stops=tuple(stops),
        rank=Rank.SUBJECT if instants.brokers.intersection(ends) else Rank.CONTROL,
        epoch=event.controller_epoch,
        burst=(*burst, *ends),
    )


def _znode_writes(events: Sequence[Timed], instants: ProofTimes) -> Iterator[Item]:
    attempted: dict[tuple[object, ...], Timed] = {}
    logged = {e.zxid: identity(e) for _, e in events if e.kind == Kind.ZNODE and e.path}
    for time, event in events:
        if event.kind not in (Kind.ZNODE_ATTEMPT, Kind.ZNODE_OUTCOME):
            continue
        if instants.subject is not None and not _is_about(event.path, instants.subject):
            continue
        key = (event.process, event.incarnation, event.path, event.controller_epoch)
        if event.kind == Kind.ZNODE_ATTEMPT:
            attempted[key] = (time, event)
        elif key in attempted:
            yield _write_item(attempted.pop(key), (time, event), logged.get(event.zxid))
    for left in attempted.values():
        if left[0] < instants.end - UNDERWAY_NS:
            yield _write_item(left, None, None)


def _write_item(attempt: Timed, outcome: Timed | None, logged: Identity | None) -> Item:
    _, event = attempt
    stops = [_stop(*attempt, text=say(event))]
    if outcome is not None:
        stops.append(Stop(outcome[0], ZOOKEEPER, event=logged, shares_row=True))
        stops.append(_stop(*outcome, text=say(outcome[1]), tone=_tone(outcome[1].error)))
    kind = None if outcome is None else outcome[1].error
    return Item(
        stops=tuple(stops),
        rank=Rank.SUBJECT,
        epoch=event.controller_epoch,
        burst=("write", event.process, event.controller_epoch, kind),
        lost_to=ZOOKEEPER if outcome is None else None,
    )


def _is_about(path: str | None, subject: tuple[str, int]) -> bool:
    return path is not None and f"/{subject[0]}/partitions/{subject[1]}/" in path


def _records(events: Sequence[Timed]) -> Iterator[Item]:
    """Sends and polls of clients, and what followers copy."""
    leaders: list[Timed] = []
    acknowledged: list[Timed] = []
    copies: list[Timed] = []
    begun: dict[tuple[str, int | None], Timed] = {}
    ended: list[tuple[Timed, Timed]] = []
    for time, event in events:
        if event.kind == Kind.APPEND:
            (leaders if event.role == "leader" else copies).append((time, event))
        elif event.kind == Kind.PRODUCE_ACKNOWLEDGED:
            acknowledged.append((time, event))
        elif event.kind == Kind.INVOKE:
            begun[event.process, event.op] = (time, event)
        elif event.kind in _ENDS and (event.process, event.op) in begun:
            ended.append((begun.pop((event.process, event.op)), (time, event)))
    used: set[Identity] = set()
    for first, last in ended:
        item = _operation(first, last, leaders, acknowledged)
        used.update(stop.event for stop in item.stops if stop.event is not None)
        yield item
    for first in begun.values():
        yield Item((_stop(*first, text=say(first[1])),), Rank.DATA)
    for copy in copies:
        source = _source(copy[1], leaders)
        stops: tuple[Stop, ...] = (_stop(*copy, text=say(copy[1])),)
        if source is not None:
            stops = (Stop(copy[0], column_of(source), shares_row=True), *stops)
        yield Item(stops, Rank.DATA, epoch=copy[1].leader_epoch)
    for time, event in (*leaders, *acknowledged):
        if identity(event) not in used:
            yield Item((_stop(time, event, say(event)),), Rank.DATA, epoch=event.leader_epoch)


def _operation(
    first: Timed, last: Timed, leaders: Sequence[Timed], acknowledged: Sequence[Timed]
) -> Item:
    """One operation of a client; an acknowledged send with its ways through the leader."""
    begin, end = first[1], last[1]
    stops = [_stop(*first, text=say(begin))]
    if begin.f == "send" and end.kind == Kind.OK:
        for step in (leaders, acknowledged):
            timeds = [
                timed for timed in step if first[0] <= timed[0] <= last[0] and _holds(timed[1], end)
            ]
            if timeds:
                stops.append(_stop(*timeds[0], text=say(timeds[0][1])))
    elif end.node is not None:
        stops.append(Stop(last[0], f"broker-{end.node}", shares_row=True))
    stops.append(_stop(*last, text=say(end), tone=_ENDS[Kind(end.kind)]))
    is_poll = begin.f == "poll"
    burst = ("poll", end.kind, end.error) if is_poll or end.kind != Kind.OK else None
    return Item(tuple(stops), Rank.DATA, burst=burst)


def _holds(batch: Event, answer: Event) -> bool:
    if batch.node != answer.node or batch.offset is None or answer.offset is None:
        return False
    last = batch.offset if batch.last_offset is None else batch.last_offset
    return batch.offset <= answer.offset <= last


def _source(copy: Event, leaders: Sequence[Timed]) -> Event | None:
    """The leader's append of the same batch, if it is near enough to have been read."""
    same = [
        event
        for _, event in leaders
        if (event.offset, event.last_offset, event.leader_epoch)
        == (copy.offset, copy.last_offset, copy.leader_epoch)
    ]
    return same[0] if same else None


def _notes(events: Sequence[Timed], instants: ProofTimes) -> Iterator[Item]:
    written = {e.zxid for _, e in events if e.kind == Kind.ZNODE_OUTCOME and e.error == "NONE"}
    for time, event in events:
        if event.kind not in _NOTES or (event.kind == Kind.ZNODE and event.zxid in written):
            continue
        rank = Rank.TURN if event.kind in _TURNS else Rank.DATA
        if event.kind in _SUBJECTS:
            rank = Rank.CONTROL if instants.subject is None else Rank.SUBJECT
        tone = Tone.FAULT if event.fault else Tone.PLAIN
        epochs = (event.controller_epoch, event.leader_epoch)
        subject = (event.fault_id, event.path, event.session)
        wording = (getattr(event, name) for name in WORDING)
        burst = (event.kind, event.process, *epochs, *subject, *wording)
        text = say(event)
        if event.kind == Kind.SESSION_CLOSED:
            if (owner := instants.owners.get(event.session or 0)) is None:
                continue  # a client's, or the harness's own
            text = f"session of {owner} {event.reason}"
        yield Item(
            (_stop(time, event, text, tone),),
            rank,
            epoch=event.controller_epoch,
            burst=burst,
        )


def _alone(events: Sequence[Timed], wanted: frozenset[Identity]) -> Iterator[Item]:
    """What proves the finding and is no part of anything else, whatever its kind."""
    for time, event in events:
        if identity(event) in wanted:
            yield Item((_stop(time, event, say(event)),), Rank.PROOF)


def _marked(item: Item, proof: Iterable[Identity]) -> Item:
    proves = any(stop.event in proof for stop in item.stops if stop.event is not None)
    return replace(item, rank=Rank.PROOF, burst=None) if proves else item


def _tone(error: str | None) -> Tone:
    return Tone.GOOD if error in (None, "NONE") else Tone.BAD


def _bars(events: Sequence[Timed]) -> Iterator[Bar]:
    applied: dict[int | None, Timed] = {}
    over: dict[int | None, int] = {}
    for time, event in events:
        if event.kind == Kind.FAULT_APPLIED:
            applied[event.fault_id] = (time, event)
        elif event.kind == Kind.FAULT_HEALED:
            over[event.fault_id] = time
    for number, (time, event) in applied.items():
        for node in event.targets or []:
            yield Bar(column_of_node(node), event.fault or "fault", time, over.get(number))
