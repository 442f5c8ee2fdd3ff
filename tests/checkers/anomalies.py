"""One anomaly put into a correct history: each function takes the events and a way to choose, and spoils them.

Each returns the spoiled history, or ``None`` when this history offers no place for the anomaly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from nemesis.checkers.breaks.client_offsets import answered
from nemesis.checkers.breaks.clients import missed, returned_nothing
from nemesis.checkers.breaks.epoch_ends import epoch_end
from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    harness,
    loaded,
    truncate,
)
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.late_recovery import measured
from nemesis.checkers.breaks.leader_epochs_fenced import stating
from nemesis.checkers.breaks.offsets_at_rest import waits
from nemesis.checkers.unclean import SETTING
from nemesis.history.events import Event

Choose = Callable[[Sequence[int]], int]
Spoil = Callable[[list[Event], Choose], list[Event] | None]

change = msgspec.structs.replace


def _places(events: list[Event], kind: str, **columns: object) -> list[int]:
    return [
        index
        for index, event in enumerate(events)
        if event.kind == kind
        and all(getattr(event, name) == value for name, value in columns.items())
    ]


def _with(events: list[Event], index: int, event: Event) -> list[Event]:
    return [*events[:index], event, *events[index + 1 :]]


def _end(events: list[Event]) -> int:
    return max(event.time for event in events) + 1


def _other(node: int | None) -> int:
    return 1 + (node or 0) % 3


def epoch_leaps(events: list[Event], choose: Choose) -> list[Event] | None:
    index = _places(events, "znode", path="/controller_epoch", zk_op="setData")[-1]
    return _with(events, index, change(events[index], controller_epoch=50))


def acts_in_anothers_epoch(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "control-request-sent"))
    node = _other(events[index].node)
    return _with(events, index, change(events[index], node=node, process=f"broker-{node}"))


def heeds_a_stale_controller(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "control-request-handled", error="NONE"))
    return [
        *events,
        change(
            events[index], time=events[index].time, seq=events[index].seq + 1, controller_epoch=0
        ),
    ]


def writes_unfenced(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "leader-elected"))
    write = next(i for i in _places(events, "znode", zxid=events[index].zxid, seq=1))
    return _with(events, write, change(events[write], session=777))


def heeds_what_was_said_to_another_life(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "control-request-handled", error="NONE"))
    return _with(events, index, change(events[index], broker_epoch=0))


def refuses_a_newer_registration(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "control-request-handled", error="NONE"))
    newer = change(events[index], broker_epoch=10_000, error="STALE_BROKER_EPOCH")
    return _with(events, index, newer)


def takes_in_a_member_of_an_earlier_life(events: list[Event], choose: Choose) -> list[Event] | None:
    about: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0, "error": "NONE"}
    sent = events[choose(_places(events, "control-request-sent"))]
    assert sent.node is not None
    assert sent.peer is not None
    stale = {"isr": [sent.peer], "isr_epochs": [0], "peer": sent.node, "broker_epoch": 10_000}
    now = _end(events)
    incarnation = sent.incarnation or 1
    kind = "alter-partition-handled"
    return [
        *events,
        broker(now, sent.node, kind, incarnation=incarnation, zxid=1, **stale, **about),
    ]


def makes_an_online_partition_new(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "transition", replica=None))
    return _with(events, index, change(events[index], from_state="Online", to_state="New"))


def loses_a_transition(events: list[Event], choose: Choose) -> list[Event] | None:
    """A replica's state changes, and no event records it."""
    transitions = _places(events, "transition", from_state="NonExistent", to_state="New")
    index = choose([number for number in transitions if events[number].replica is not None])
    return [*events[:index], *events[index + 1 :]]


def keeps_the_leader_epoch(events: list[Event], choose: Choose) -> list[Event] | None:
    index = _places(events, "znode", seq=1, topic="t")[-1]
    last = events[index]
    assert last.zxid is not None
    again = change(last, zxid=last.zxid + 1, leader=9, isr=[9])
    return [*events, again]


def two_leaders(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "become-leader"))
    node = _other(events[index].node)
    return [*events, change(events[index], node=node, process=f"broker-{node}")]


def elects_an_outsider(events: list[Event], choose: Choose) -> list[Event] | None:
    """No broker permits it, and no controller traces it."""
    index = _places(events, "znode", seq=1, topic="t")[-1]
    last = events[index]
    assert last.zxid is not None
    assert last.leader_epoch is not None
    outsider = change(
        last, zxid=last.zxid + 1, leader=9, isr=[9], leader_epoch=last.leader_epoch + 1
    )
    forbidden = harness(0, "broker-property", setting=SETTING, count=0)
    return [*events, forbidden, outsider]


def overstates_the_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "high-watermark"))
    mark = events[index]
    return _with(events, index, change(mark, high_watermark=(mark.high_watermark or 0) + 1000))


def lowers_the_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "high-watermark"))
    mark = events[index]
    return [*events, change(mark, seq=mark.seq + 1, high_watermark=0)]


def starts_above_the_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    """A log loses records at its start that are not committed (KAFKA-5634)."""
    positions = [
        index
        for index in _places(events, "become-leader")
        if events[index].high_watermark is not None
    ]
    if not positions:
        return None
    position = choose(positions)
    start = (events[position].high_watermark or 0) + 1
    return _with(events, position, change(events[position], log_start_offset=start))


def cuts_committed_records(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "high-watermark"))
    isr = events[index].maximal_isr or []
    node = isr[choose(range(len(isr)))]
    return [*events, truncate(_end(events), node, 0)]


def cuts_below_its_own_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    mark = events[choose(_places(events, "high-watermark"))].high_watermark or 0
    return [*events, truncate(_end(events), 3, mark, high_watermark_before=2 * mark + 99)]


def cuts_its_log_as_leader(events: list[Event], choose: Choose) -> list[Event] | None:
    led = events[choose(_places(events, "become-leader"))]
    assert led.node is not None
    cut = truncate(led.time, led.node, 0, incarnation=led.incarnation)
    return [*events, change(cut, seq=led.seq)]


def opens_a_log_with_a_mark_behind_its_end(
    events: list[Event], choose: Choose
) -> list[Event] | None:
    index = choose(_places(events, "log-loaded"))
    end = events[index].log_end_offset or 0
    return _with(events, index, change(events[index], high_watermark=end + 1))


def remembers_a_producer_beyond_its_end(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "log-loaded"))
    end = events[index].log_end_offset or 0
    return _with(events, index, change(events[index], producers_end=end + 1))


def knows_an_older_epoch_again(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "partition-metadata"))
    return [*events, change(events[index], seq=events[index].seq + 1, partition_epoch=-1)]


def answers_other_metadata(events: list[Event], choose: Choose) -> list[Event] | None:
    known = events[choose(_places(events, "partition-metadata"))]
    now = _end(events)
    about = {"process": "query-9", "incarnation": None, "f": "metadata", "op": 9, "time": now}
    return [
        *events,
        change(known, kind="invoke", seq=1, **about),
        change(known, kind="ok", seq=2, **about, leader_epoch=99, isr=[1], replicas=[1]),
    ]


def sends_a_state_that_was_never_written(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "control-request-answered", api="UpdateMetadata"))
    return _with(events, index, change(events[index], leader=_other(events[index].leader)))


def acknowledges_alone(events: list[Event], choose: Choose) -> list[Event] | None:
    """The leader's setting needs two in-sync replicas, and it counts itself alone."""
    index = choose(_places(events, "produce-acknowledged"))
    alone = change(events[index], last_offset=10_000, isr=[events[index].node])
    return [
        change(event, min_insync_replicas=2) if event.kind == "broker-started" else event
        for event in _with(events, index, alone)
    ]


def acknowledges_early(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "produce-acknowledged"))
    return _with(events, index, change(events[index], last_offset=10_000))


def tears_a_batch(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "append", role="follower"))
    reported = any(
        event.kind == "append"
        and (event.offset, event.leader_epoch) == (events[index].offset, events[index].leader_epoch)
        for event in [*events[:index], *events[index + 1 :]]
    )
    return _with(events, index, change(events[index], crc=1)) if reported else None


def elects_a_leader_without_records(events: list[Event], choose: Choose) -> list[Event] | None:
    late = {"leader_epoch": 99, "log_end_offset": 0, "log_start_offset": 0, "high_watermark": 0}
    about: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}
    return [*events, broker(_end(events), 2, "become-leader", incarnation=99, **late, **about)]


def elects_a_leader_with_other_records(events: list[Event], choose: Choose) -> list[Event] | None:
    """It wrote something else at offset 0, in an epoch of its own."""
    mark = max(event.high_watermark or 0 for event in events if event.kind == "high-watermark")
    now = _end(events)
    lead = {"leader_epoch": 99, "log_end_offset": mark, "log_start_offset": 0}
    about: dict[str, Any] = {"topic": "t", "topic_id": "id", "partition": 0}
    other = append(now, 4, 98, 0, last=mark - 1, crc=3)
    return [*events, other, broker(now + 1, 4, "become-leader", **lead, **about)]


def _final_poll(events: list[Event]) -> int:
    return next(
        index for index in _places(events, "ok", f="poll") if events[index].process == "final-0"
    )


def loses_a_record(events: list[Event], choose: Choose) -> list[Event] | None:
    """The last reads find another value in its place."""
    index = _final_poll(events)
    values = list(events[index].values or ())
    acknowledged = {event.value for event in events if event.kind == "ok" and event.f == "send"}
    positions = [i for i, value in enumerate(values) if value in acknowledged]
    if not positions:
        return None
    values[choose(positions)] = 99_999
    return _with(events, index, change(events[index], values=values))


def loses_the_tail(events: list[Event], choose: Choose) -> list[Event] | None:
    """The final reads end before records that were acknowledged."""
    index = _final_poll(events)
    acknowledged = [
        event.offset
        for event in events
        if event.kind == "ok" and event.f == "send" and event.offset is not None
    ]
    if not acknowledged:
        return None
    length = max(acknowledged)
    offsets, values = list(events[index].offsets or ()), list(events[index].values or ())
    shorter = change(events[index], offsets=offsets[:length], values=values[:length])
    return [
        change(event, offset=length, high_watermark=length) if event.kind == "final-read" else event
        for event in _with(events, index, shorter)
        if event.kind != "become-leader"
    ]


def withholds_a_record(events: list[Event], choose: Choose) -> list[Event] | None:
    """The final reads ask twice for an acknowledged record, and are answered that nothing is there."""
    sends = _places(events, "ok", f="send", acks=-1)
    if not sends:
        return None
    withheld = events[choose(sends)].offset or 0
    index, now = _final_poll(events), _end(events)
    offsets, values = (events[index].offsets or [])[:withheld], events[index].values or []
    read = change(events[index], offsets=offsets, values=values[:withheld])
    about: dict[str, Any] = {"position": withheld, "mark": withheld + 1}
    return [
        *(event for event in _with(events, index, read) if event.kind != "final-read"),
        *returned_nothing(now, **about),
        *returned_nothing(now + 2, **about),
        missed(now + 4, **about),
    ]


def reads_a_failed_send(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "ok", f="send"))
    return _with(events, index, change(events[index], kind="fail", offset=None))


def skips_a_record(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [
        index for index in _places(events, "ok", f="poll") if len(events[index].offsets or ()) > 1
    ]
    if not positions:
        return None
    position = choose(positions)
    offsets, values = list(events[position].offsets or ()), list(events[position].values or ())
    gone = choose(range(len(offsets) - 1))
    del offsets[gone], values[gone]
    return _with(events, position, change(events[position], offsets=offsets, values=values))


def repeats_a_record(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [index for index in _places(events, "ok", f="poll") if events[index].offsets]
    if not positions:
        return None
    position = choose(positions)
    offsets, values = list(events[position].offsets or ()), list(events[position].values or ())
    return _with(
        events,
        position,
        change(events[position], offsets=[*offsets, offsets[-1]], values=[*values, values[-1]]),
    )


def sends_backwards(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = _places(events, "ok", f="send")
    if not positions:
        return None
    early = events[positions[0]]
    now = _end(events)
    about = {"op": 9_999, "value": 9_999, "f": "send", "acks": -1, "process": early.process}
    return [
        *events,
        change(early, **about, kind="invoke", time=now, seq=now, offset=None, node=None),
        change(early, **about, time=now + 1, seq=now + 1, offset=early.offset),
    ]


def writes_a_value_twice(events: list[Event], choose: Choose) -> list[Event] | None:
    index = _final_poll(events)
    offsets, values = list(events[index].offsets or ()), list(events[index].values or ())
    if len(values) < 2:
        return None
    return _with(
        events, index, change(events[index], offsets=offsets, values=[values[1], *values[1:]])
    )


def reads_of_another_life(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [index for index in _places(events, "ok", f="poll") if events[index].values]
    if not positions:
        return None
    again = change(events[choose(positions)], time=_end(events), process="consumer-9", topic_id="x")
    return [*events, again]


def forgets_a_topic(events: list[Event], choose: Choose) -> list[Event] | None:
    (index,) = _places(events, "end-state", source="zookeeper", topic="t")
    return events[:index] + events[index + 1 :]


def keeps_a_log_of_nothing(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "end-state", source="logs", topic="t"))
    return [*events, change(events[index], partition=1)]


def moves_by_itself(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = _places(events, "end-state", source="zookeeper", topic="t")
    if not positions:
        return None
    return _with(events, positions[0], change(events[positions[0]], replicas=[3, 2, 1]))


def takes_in_a_replica_that_lags(events: list[Event], choose: Choose) -> list[Event] | None:
    """The leader's epoch began behind the end of every log, and it proposes another member."""
    led = events[_places(events, "become-leader")[-1]]
    assert led.node is not None
    now, member = _end(events), _other(led.node)
    start = 1 + max(event.log_end_offset or 0 for event in events)
    epoch = {"leader_epoch": (led.leader_epoch or 0) + 1, "log_end_offset": start}
    proposed = broker(
        now + 2,
        led.node,
        "isr-change-proposed",
        incarnation=led.incarnation or 1,
        leader_epoch=epoch["leader_epoch"],
        isr=[led.node],
        maximal_isr=[led.node, member],
        change="expand",
        **TP,
    )
    follows = broker(now + 1, member, "become-follower", **epoch | {"log_end_offset": 0}, **TP)
    return [*events, change(led, time=now, seq=now, isr=[led.node], **epoch), follows, proposed]


def states_what_no_fetch_carried(events: list[Event], choose: Choose) -> list[Event] | None:
    """The leader states another broker epoch of a member than that of its fetches."""
    index = choose(_places(events, "alter-partition-handled"))
    handled = events[index]
    epochs = [
        epoch if member == handled.peer else -1 - epoch
        for member, epoch in zip(handled.isr or (), handled.isr_epochs or (), strict=True)
    ]
    if epochs == handled.isr_epochs:
        return None
    return _with(events, index, change(handled, isr_epochs=epochs))


def _answers_for_more(events: list[Event], choose: Choose, api: str) -> list[Event]:
    answers = _places(events, "control-request-answered", api=api)
    index = choose([number for number in answers if events[number].leader != -1])
    answer = events[index]
    return _with(events, index, change(answer, leader_epoch=(answer.leader_epoch or 0) + 100))


def answers_for_a_newer_role(events: list[Event], choose: Choose) -> list[Event] | None:
    return _answers_for_more(events, choose, "LeaderAndIsr")


def answers_for_newer_metadata(events: list[Event], choose: Choose) -> list[Event] | None:
    return _answers_for_more(events, choose, "UpdateMetadata")


def answers_less_than_before(events: list[Event], choose: Choose) -> list[Event] | None:
    led = events[_places(events, "become-leader")[-1]]
    assert led.node is not None
    now, end = _end(events), 1 + max(event.offset or 0 for event in events)
    first = answered(now, "latest-offset", led.node, end)
    return [*events, *first, *answered(now + 2, "latest-offset", led.node, end - 1)]


def answers_for_another_epoch(events: list[Event], choose: Choose) -> list[Event] | None:
    now, epoch = _end(events), 1 + choose(range(9))
    leads = [loaded(now, 9, 0), become_leader(now + 1, 9, epoch, 0)]
    return [*events, *leads, *epoch_end(now + 2, 9, epoch, epoch - 1, 0)]


def answers_in_an_older_epoch(events: list[Event], choose: Choose) -> list[Event] | None:
    now, epoch = _end(events), 1 + choose(range(9))
    return [*events, follows(now, 9, epoch, 0), *stating(now + 1, 9, epoch - 1)]


def loses_a_log(events: list[Event], choose: Choose) -> list[Event] | None:
    index = choose(_places(events, "end-state", source="logs", topic="t"))
    return events[:index] + events[index + 1 :]


def reads_above_the_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [index for index in _places(events, "ok", f="poll") if events[index].offsets]
    if not positions:
        return None
    position = choose(positions)
    return _with(
        events,
        position,
        change(events[position], high_watermark=max(events[position].offsets or ())),
    )


def reads_before_the_commit(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [index for index in _places(events, "ok", f="poll") if events[index].offsets]
    if not positions:
        return None
    position = choose(positions)
    read = max(events[position].offsets or ())

    def lowered(event: Event) -> Event:
        """What every leader says before that poll."""
        mark = event.high_watermark
        is_before = event.kind not in ("invoke", "ok") and event.time <= events[position].time
        return (
            event
            if mark is None or not is_before
            else change(event, high_watermark=min(mark, read))
        )

    return [lowered(event) for event in events]


def stores_other_bytes(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = list(_committed_batches(events))
    if not positions:
        return None
    index = choose(positions)
    return _with(events, index, change(events[index], crc=1))


def stores_a_hole(events: list[Event], choose: Choose) -> list[Event] | None:
    positions = [
        committed_batch
        for committed_batch in _committed_batches(events)
        if events[committed_batch].offset
    ]
    if not positions:
        return None
    index = choose(positions)
    return [*events[:index], *events[index + 1 :]]


def stores_less_than_it_said(events: list[Event], choose: Choose) -> list[Event] | None:
    all_marks = [e for e in events if e.kind == "high-watermark"]
    newest = max((e.leader_epoch or 0 for e in all_marks), default=0)
    last = {
        node: mark for mark in all_marks for node in (1, 2, 3) if node in (mark.maximal_isr or ())
    }
    loaded = {e.node: e.time for e in events if e.kind == "log-loaded"}
    nodes = [
        node
        for node, mark in sorted(last.items())
        if mark.leader_epoch == newest and loaded[node] <= mark.time
    ]
    if not nodes:
        return None
    node = choose(nodes)
    end = (last[node].high_watermark or 0) - 1
    return [
        change(event, log_end_offset=end, high_watermark=min(event.high_watermark or 0, end))
        if event.kind == "stored-log" and event.node == node
        else event
        for event in events
        if not (event.kind == "stored-batch" and event.node == node and (event.offset or 0) >= end)
    ]


def _committed_batches(events: list[Event]) -> list[int]:
    """Those below every stored high watermark."""
    lowest = min(
        event.high_watermark or 0
        for event in events
        if event.kind == "stored-log" and event.topic is not None
    )
    return [
        index
        for index in _places(events, "stored-batch")
        if (events[index].last_offset or 0) < lowest
    ]


def raises_an_exception(events: list[Event], choose: Choose) -> list[Event] | None:
    appended = events[choose(_places(events, "append"))]
    assert appended.node is not None
    raised = broker(appended.time, appended.node, "unforeseen-exception", error="KeyError: 7")
    return [*events, change(raised, seq=appended.seq + 1)]


def answers_a_high_watermark_behind_its_end(
    events: list[Event], choose: Choose
) -> list[Event] | None:
    index = choose(_places(events, "replica-offsets"))
    end = events[index].log_end_offset or 0
    return _with(events, index, change(events[index], high_watermark=end + 1))


def ends_below_the_high_watermark_of_its_leader(
    events: list[Event], choose: Choose
) -> list[Event] | None:
    samples = _places(events, "replica-sample")
    mark = max((events[index].high_watermark or 0 for index in samples), default=0)
    ends = [index for index in samples if events[index].log_end_offset is not None]
    if mark == 0:
        return None
    index = choose(ends)
    return _with(events, index, change(events[index], log_end_offset=mark - 1))


def keeps_an_old_high_watermark(events: list[Event], choose: Choose) -> list[Event] | None:
    followers = [
        index
        for index in _places(events, "replica-offsets")
        if events[index].node != events[index].leader and (events[index].high_watermark or 0) > 0
    ]
    if not followers:
        return None
    index = choose(followers)
    fallen = change(events[index], high_watermark=(events[index].high_watermark or 0) - 1)
    # The run states how long replicas may take, and that the machine was not late.
    return [*waits(), *_with(events, index, fallen), *measured(_end(events))]


def answers_what_the_client_has_not_asked(
    events: list[Event], choose: Choose
) -> list[Event] | None:
    fetches = [i for i in _places(events, "fetch-received") if events[i].answered is not None]
    if not fetches:
        return None
    index = choose(fetches)
    answered = [*(events[index].answered or []), "id-99"]
    return _with(events, index, change(events[index], answered=answered))


ANOMALIES: dict[str, list[Spoil]] = {
    "single-controller": [acts_in_anothers_epoch],
    "controller-epoch-grows": [epoch_leaps],
    "stale-controller-fenced": [heeds_a_stale_controller, writes_unfenced],
    "broker-epoch-fenced": [
        heeds_what_was_said_to_another_life,
        refuses_a_newer_registration,
        takes_in_a_member_of_an_earlier_life,
    ],
    "leader-epoch-grows": [keeps_the_leader_epoch],
    "one-leader-per-epoch": [two_leaders],
    "leader-from-isr": [elects_an_outsider],
    "legal-transition": [makes_an_online_partition_new, loses_a_transition],
    "hw-bounded": [overstates_the_high_watermark],
    "hw-grows": [lowers_the_high_watermark],
    "hw-sampled": [ends_below_the_high_watermark_of_its_leader],
    "no-truncation-below-hw": [cuts_committed_records, cuts_below_its_own_high_watermark],
    "log-start-bounded": [starts_above_the_high_watermark],
    "ack-after-commit": [acknowledges_early],
    "isr-join-caught-up": [takes_in_a_replica_that_lags],
    "isr-epochs-stated": [states_what_no_fetch_carried],
    "leader-keeps-log": [cuts_its_log_as_leader],
    "hw-within-log": [opens_a_log_with_a_mark_behind_its_end],
    "producers-within-log": [remembers_a_producer_beyond_its_end],
    "metadata-never-back": [knows_an_older_epoch_again],
    "metadata-answered": [answers_other_metadata],
    "states-sent-as-written": [sends_a_state_that_was_never_written],
    "control-requests-applied": [answers_for_a_newer_role, answers_for_newer_metadata],
    "min-isr-behind-ack": [acknowledges_alone],
    "client-offsets-grow": [answers_less_than_before],
    "epoch-ends-answered": [answers_for_another_epoch],
    "leader-epochs-fenced": [answers_in_an_older_epoch],
    "fetches-answered": [answers_what_the_client_has_not_asked],
    "log-matching": [tears_a_batch],
    "final-logs": [stores_other_bytes, stores_a_hole, stores_less_than_it_said],
    "offsets-at-rest": [answers_a_high_watermark_behind_its_end, keeps_an_old_high_watermark],
    "leader-completeness": [
        elects_a_leader_without_records,
        elects_a_leader_with_other_records,
    ],
    "lost-write": [loses_a_record],
    "unseen": [loses_a_record, loses_the_tail],
    "withheld": [withholds_a_record],
    "stale-read-above-hw": [reads_above_the_high_watermark, reads_before_the_commit],
    "inconsistent-offset": [loses_a_record],
    "dirty-read": [reads_a_failed_send],
    "poll-skip": [skips_a_record],
    "nonmonotonic-poll": [repeats_a_record],
    "nonmonotonic-send": [sends_backwards],
    "duplicate": [writes_a_value_twice],
    "earlier-life-read": [reads_of_another_life],
    "deletion": [forgets_a_topic, keeps_a_log_of_nothing],
    "no-unforeseen-exception": [raises_an_exception],
    "reassignment": [moves_by_itself, loses_a_log],
}
"""Property → what breaks it."""
