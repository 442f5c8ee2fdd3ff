"""Indexes, epochs, snapshots and checkpoints against the batches of a log: what a correct broker leaves is not held
against it."""

from __future__ import annotations

import msgspec
import pytest

from nemesis.checkers.breaks.events import broker, harness, history, loaded, truncate, znode
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.log_files import (
    SIZE,
    beside,
    entry,
    limit,
    raised,
    snapshot,
    stored,
    stored_batch,
)
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.replication.log_files import LogFiles
from nemesis.history.events import Event
from tests.checkers.histories import only


def agrees(*parts: Event | list[Event]) -> bool:
    result = only(LogFiles(), history(*parts), "log-files-agree")
    assert result.verdict in {Verdict.VALID, Verdict.INVALID}
    return result.verdict is Verdict.VALID


def rolls(*parts: Event | list[Event]) -> Verdict:
    return only(LogFiles(), history(*parts), "segments-roll").verdict


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([entry(1, position=SIZE)], id="the-batch-itself"),
        pytest.param([entry(1, position=SIZE), entry(2, position=2 * SIZE)], id="two"),
        pytest.param([entry(2, max_timestamp=2)], id="the-largest-time"),
        pytest.param([], id="no-index"),
        pytest.param(
            [beside("stored-index-entry", segment_offset=3, offset=3, position=99)],
            id="the-last-segment-is-written-to",
        ),
        pytest.param(snapshot(3, last=2), id="the-last-batch-of-a-producer"),
        pytest.param(snapshot(9, last=8), id="a-snapshot-beyond-the-end"),
        pytest.param([beside("stored-epoch", leader_epoch=4, offset=4)], id="an-epoch-at-the-end"),
    ],
)
def test_what_a_correct_broker_leaves(events: list[Event]) -> None:
    assert agrees(stored(0, 3), events)


def test_an_index_may_name_a_batch_before_the_offset() -> None:
    """Kafka up to 3.7 adds the last offset of what it appended in one piece, at the position of its beginning."""
    assert agrees(stored(0, 3), entry(2, position=SIZE))


def test_a_time_index_that_ends_early() -> None:
    assert not agrees(stored(0, 3), entry(1, max_timestamp=1))


def test_epochs_are_those_of_the_batches() -> None:
    log = [event for event in stored(0) if event.kind != "stored-epoch"]
    begun = [beside("stored-epoch", leader_epoch=3, offset=2)]
    assert not agrees(log)
    assert not agrees(log, [beside("stored-epoch", leader_epoch=2, offset=0)])
    assert agrees(log, begun), "the log may have been set to start at 2"


def test_the_first_epoch_begins_where_a_broker_that_traces_has_set_the_start() -> None:
    """KAFKA-10432: a recovery that forgets the first epoch."""
    log = [event for event in stored(0) if event.kind != "stored-epoch"]
    begun = [beside("stored-epoch", leader_epoch=3, offset=2)]
    opened = loaded(1, 1, 0, log_start_offset=0)
    assert not agrees(opened, log, begun)
    assert not agrees(opened, raised(1), log, begun), "not as far"
    assert not agrees(opened, raised(2, node=2), log, begun), "another broker has"
    assert agrees(opened, raised(2), log, begun)
    assert agrees(opened, raised(3), log, begun), "the epochs are written later"
    assert agrees(opened, truncate(2, 1, 2, log_start_offset=2), log, begun), "emptied"
    assert agrees(opened, truncate(2, 1, 2), log, begun), "of an older version"
    assert agrees(loaded(1, 1, 4, log_start_offset=2), log, begun), "opened there"
    assert agrees(loaded(1, 2, 4, log_start_offset=0), log, begun), "it does not trace"


def epoch(number: int, offset: int) -> Event:
    return beside("stored-epoch", leader_epoch=number, offset=offset)


def test_no_epoch_begins_before_the_first_segment() -> None:
    log = [event for event in stored(2, 3) if event.kind != "stored-epoch"]
    assert agrees(raised(2), log, epoch(3, 2))
    assert agrees(raised(3), log, epoch(3, 3)), "the segment is deleted later"
    assert agrees(raised(3), log, epoch(3, 2)), (
        "killed after the trace, before the epochs are written"
    )
    for kept in ([epoch(3, 1)], [epoch(2, 0), epoch(3, 2)]):
        assert not agrees(raised(2), log, kept)
        assert not agrees(raised(1), raised(3), log, kept)
        assert agrees(log, kept), "the broker has not traced the start"
        assert agrees(raised(1), log, kept), "not as far"
        assert agrees(raised(2, node=2), log, kept), "another broker has"
    result = only(LogFiles(), history(raised(2), log, epoch(2, 0), epoch(3, 2)), "log-files-agree")
    (finding,) = result.findings
    assert finding.sentence == (
        "In the files of broker 1 the first segment of t-0 is the one from offset 2 on, but by its checkpoint of "
        "epochs leader epoch 2 begins at 0."
    )


def test_a_snapshot_of_a_compacted_log_names_batches_that_are_gone() -> None:
    [log, segment, *batches] = stored(0, cleaner_offset=3)
    assert agrees([log, segment, *batches[2:]], snapshot(2, last=1))


def test_a_marker_of_a_newer_epoch_leaves_a_producer_without_batches() -> None:
    log = stored(0)
    assert agrees(log, snapshot(3, last=-1, producer_epoch=2))
    assert not agrees(log, snapshot(3, last=-1)), "the batches are of this epoch"


def test_producers_are_forgotten_by_the_clock() -> None:
    lacking = beside("stored-snapshot", offset=3)
    moved = [
        harness(1, "fault-invoke", fault="clock-skew", fault_id=1),
    ]
    assert not agrees(stored(0), lacking)
    assert agrees(stored(0), lacking, moved)
    assert not agrees(stored(0), lacking, fault(1, 2))


def test_a_failed_directory_takes_no_checkpoint() -> None:
    failed = broker(1, 1, "log-dir-failed", log_dir="d", error="EIO")
    assert not agrees(stored(0, recovery_point=5))
    assert agrees(stored(0, recovery_point=5), failed)


def test_a_damaged_log_is_judged_up_to_the_damage() -> None:
    [log, *rest] = stored(0, 3, recovery_point=5)
    columns = {name: getattr(log, name) for name in log.__struct_fields__}
    damaged = Event(**columns | {"error": "torn"})
    assert agrees([damaged, *rest])
    assert not agrees([damaged, *rest], entry(1, position=SIZE + 1))


@pytest.mark.parametrize(
    ("size", "bases", "decided"),
    [
        (40, (0,), Verdict.VALID),
        (39, (0,), Verdict.INVALID),
        (30, (0, 3), Verdict.VALID),
        (29, (0, 2, 3), Verdict.VALID),
        (30, (0, 2, 3), Verdict.INVALID),
        (30, (0, 1, 3), Verdict.INVALID),
        (40, (0, 2), Verdict.VALID),
    ],
)
def test_sizes_of_segments(size: int, bases: tuple[int, ...], decided: Verdict) -> None:
    assert rolls(limit(size), stored(*bases)) is decided


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [znode(1, 9, "/config/topics/t", data='{"config":{"segment.bytes":"20"}}')],
            id="a-setting-of-the-topic",
        ),
        pytest.param(
            [znode(1, 9, "/config/topics/t", data='{"config":{"segment.ms":"2"}}')],
            id="an-age-of-the-topic",
        ),
    ],
)
def test_topics_with_settings_of_their_own(events: list[Event]) -> None:
    assert rolls(limit(40), stored(0, 2, 3), events) is Verdict.VALID
    assert rolls(limit(40), stored(0, 2, 3)) is Verdict.INVALID


@pytest.mark.parametrize("setting", ["log.roll.ms", "log.index.size.max.bytes"])
def test_brokers_that_roll_segments_for_another_reason(setting: str) -> None:
    stated = harness(0, "broker-property", setting=setting, count=24)
    assert rolls(limit(40), stated, stored(0, 2, 3)) is Verdict.VALID
    assert rolls(limit(39), stated, stored(0)) is Verdict.INVALID, "it is too large all the same"


def reconfigured(config: str) -> Event:
    return znode(1, 9, "/config/brokers/<default>", data=f'{{"config":{config}}}')


@pytest.mark.parametrize(
    ("config", "size", "bases", "decided"),
    [
        ('{"log.roll.ms":"2"}', 40, (0, 2, 3), Verdict.VALID),
        ('{"log.segment.bytes":"20"}', 40, (0, 2, 3), Verdict.VALID),
        ('{"log.segment.bytes":"40"}', 39, (0,), Verdict.VALID),
        ('{"log.segment.bytes":"38"}', 39, (0,), Verdict.INVALID),
        ('{"message.max.bytes":"20"}', 40, (0, 2, 3), Verdict.INVALID),
        ('{"log.segment.bytes":"torn"}', 40, (0, 2, 3), Verdict.INVALID),
    ],
)
def test_brokers_whose_settings_were_changed(
    config: str, size: int, bases: tuple[int, ...], decided: Verdict
) -> None:
    assert rolls(limit(size), reconfigured(config), stored(*bases)) is decided


def test_a_segment_that_may_have_been_cut_is_not_compared() -> None:
    """A follower appends two batches in one piece, which begins a segment, and cuts the second one off."""
    log = stored(0, 2, 3)
    assert rolls(limit(40), log) is Verdict.INVALID
    for first in (1, 2, 3):
        epochs = [
            msgspec.structs.replace(event, leader_epoch=9)
            if event.kind == "stored-batch" and (event.offset or 0) >= first
            else event
            for event in log
        ]
        assert rolls(limit(40), epochs) is Verdict.VALID

    def struck(fault: str, node: str) -> Event:
        return Event(
            time=1, process="nemesis", kind="fault-invoke", fault=fault, fault_id=1, targets=[node]
        )

    assert rolls(limit(40), log, struck("power-cut", "broker-1")) is Verdict.VALID
    assert rolls(limit(40), log, struck("power-cut", "broker-2")) is Verdict.INVALID
    assert rolls(limit(40), log, struck("kill", "broker-1")) is Verdict.INVALID


def test_segments_of_a_compacted_log_are_small() -> None:
    assert rolls(limit(40), stored(0, 2, 3, cleaner_offset=1)) is Verdict.VALID


def test_segments_are_rolled_by_age() -> None:
    late = [
        event if event.offset != 2 else stored_batch(2, 2, max_timestamp=3_600_000)
        for event in stored(0, 2, 3)
        if event.kind == "stored-batch"
    ]
    others = [event for event in stored(0, 2, 3) if event.kind != "stored-batch"]
    assert rolls(limit(40), others, late) is Verdict.VALID


def test_nothing_is_decided_without_the_limit() -> None:
    assert rolls(stored(0)) is Verdict.UNKNOWN


@pytest.mark.parametrize(("known", "is_right"), [(-1, True), (2**31 - 1, False), (0, False)])
def test_batches_without_sequence_numbers(known: int, is_right: bool) -> None:
    """A group coordinator writes offsets in a producer's transaction, and numbers nothing."""
    events = [
        msgspec.structs.replace(event, sequence=-1) if event.kind == "stored-batch" else event
        for event in stored(0)
    ]
    assert agrees(events, snapshot(1, last=0, sequence=known)) is is_right
