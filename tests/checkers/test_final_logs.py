"""What the files of the replicas have at the end."""

from __future__ import annotations

from typing import Any

import msgspec

from nemesis.checkers.breaks.events import (
    TP,
    append,
    broker,
    high_watermark,
    loaded,
    log_start,
    started,
)
from nemesis.checkers.breaks.offsets_at_rest import replica
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.replication.final_logs import FinalLogs
from nemesis.history.events import Event
from tests.checkers.histories import finding, only

NAME = "final-logs"


def files(
    time: int, node: int, crcs: list[int], *, mark: int | None = None, **columns: Any
) -> list[Event]:
    """A log whose batches have one record each, of leader epoch 0."""
    about: dict[str, Any] = {"process": "harness", "node": node, **TP}
    fields: dict[str, Any] = {
        "log_start_offset": 0,
        "log_end_offset": len(crcs),
        "high_watermark": len(crcs) if mark is None else mark,
        "cleaner_offset": 0,
        "alive": True,
        "error": "NONE",
        **columns,
    }
    log = Event(time=time, seq=time, kind="stored-log", **about, **fields)
    batches = [
        Event(
            time=time + 1 + index,
            seq=time + 1 + index,
            kind="stored-batch",
            offset=index,
            last_offset=index,
            leader_epoch=0,
            crc=crc,
            **about,
        )
        for index, crc in enumerate(crcs)
    ]
    return [log, *batches]


def verdict(*events: Event) -> Verdict:
    return only(FinalLogs(), [started(0, 1, unclean=False), *events], NAME).verdict


def test_the_same_batches() -> None:
    result = only(FinalLogs(), files(10, 1, [7, 8]) + files(20, 2, [7, 8]), NAME)
    assert (result.verdict, result.checked) == (Verdict.VALID, 4)


def test_other_bytes_at_one_offset() -> None:
    first, other = files(10, 1, [7]), files(20, 2, [8])
    assert (
        finding(
            NAME,
            "t-0",
            "Below high watermark 1 the files of broker 2 have another batch at offset 0 of t-0, or none, than those "
            "of broker 1.",
            first[1],
            other[1],
        )
        in only(FinalLogs(), first + other, NAME).findings
    )


def test_what_lies_above_a_high_watermark_may_differ_if_another_epoch_wrote_it() -> None:
    first, other = files(10, 1, [7, 8], mark=1), files(20, 2, [7, 9], mark=1)
    other[2] = msgspec.structs.replace(other[2], leader_epoch=1)
    assert verdict(*first, *other) is Verdict.VALID
    assert verdict(*first, *files(20, 2, [7, 9], mark=1)) is Verdict.INVALID, (
        "one epoch, two records"
    )


def test_a_file_that_contradicts_a_trace() -> None:
    assert verdict(append(1, 1, 0, 0, crc=6, role="leader"), *files(10, 1, [7])) is Verdict.INVALID
    assert verdict(append(1, 1, 0, 0, crc=7, role="leader"), *files(10, 1, [7])) is Verdict.VALID


def test_a_hole_counts_unless_the_log_was_compacted() -> None:
    def with_a_hole(**columns: Any) -> list[Event]:
        log = files(10, 1, [7, 8, 9], **columns)
        return [*log[:2], *log[3:]]

    assert verdict(*with_a_hole()) is Verdict.INVALID
    assert verdict(*with_a_hole(cleaner_offset=2)) is Verdict.VALID


def test_damage_below_the_high_watermark_counts_for_the_living() -> None:
    damaged: dict[str, Any] = {"mark": 3, "error": "00.log is damaged at byte 160"}
    assert verdict(*files(10, 1, [7, 8], **damaged)) is Verdict.INVALID
    assert verdict(*files(10, 1, [7, 8], **damaged, alive=False)) is Verdict.VALID


def test_a_log_that_begins_later_is_compared_from_there() -> None:
    later = files(20, 2, [7, 8], log_start_offset=1)
    assert verdict(*files(10, 1, [7, 8]), later[0], later[2]) is Verdict.VALID


def test_what_lies_below_the_start_of_a_log_may_be_anything() -> None:
    """In the same file as what follows; the leader could not tell its follower any more to cut that."""
    first, other = files(10, 1, [7, 8]), files(20, 2, [9, 8])
    other[1] = msgspec.structs.replace(other[1], leader_epoch=1)
    assert verdict(*first, *other) is Verdict.INVALID
    begun = msgspec.structs.replace(other[0], log_start_offset=1)
    assert verdict(*first, begun, *other[1:]) is Verdict.VALID
    started_there, crashed = log_start(5, 2, 1, 2), loaded(6, 2, 2, log_start_offset=0)
    assert verdict(started_there, crashed, *first, *other) is Verdict.VALID
    emptied = loaded(6, 2, 0, log_start_offset=0)
    assert verdict(started_there, emptied, *first, *other) is Verdict.INVALID


def test_less_than_a_leader_counted_on() -> None:
    mark = high_watermark(5, 1, 0, 2, [1, 2])
    assert verdict(mark, *files(10, 1, [7, 8]), *files(20, 2, [7])) is Verdict.INVALID
    anew = loaded(6, 2, 1)
    assert verdict(mark, anew, *files(10, 1, [7, 8]), *files(20, 2, [7])) is Verdict.VALID


def test_less_than_the_running_broker_answered() -> None:
    answered = replica(2, 2)
    assert verdict(answered, *files(40, 1, [7, 8]), *files(50, 2, [7, 8])) is Verdict.VALID
    assert verdict(answered, *files(40, 1, [7, 8]), *files(50, 2, [7], mark=1)) is Verdict.INVALID
    died = files(50, 2, [7], mark=1, alive=False)
    assert verdict(answered, *files(40, 1, [7, 8]), *died) is Verdict.VALID
    silent = replica(2, 2, error="TIMED_OUT")
    assert verdict(silent, *files(40, 1, [7, 8]), *files(50, 2, [7], mark=1)) is Verdict.VALID


def test_files_that_could_not_be_read() -> None:
    unread = Event(
        time=9, seq=9, process="harness", kind="stored-log", node=2, alive=True, error="EIO"
    )
    assert verdict(*files(10, 1, [7]), unread) is Verdict.UNKNOWN


def test_nothing_below_a_high_watermark_proves_nothing() -> None:
    assert verdict(*files(10, 1, [7], mark=0)) is Verdict.UNKNOWN


def test_logs_that_are_compacted_up_to_their_high_watermark_are_compared() -> None:
    two = [*files(10, 1, [7, 8], cleaner_offset=2), *files(20, 2, [7, 8], cleaner_offset=2)]
    result = only(FinalLogs(), [started(0, 1, unclean=False), *two], NAME)
    assert (result.verdict, result.checked) == (Verdict.VALID, 2)
    assert verdict(*files(10, 1, [7, 8], cleaner_offset=2)) is Verdict.UNKNOWN


def test_traces_alone_prove_nothing() -> None:
    assert verdict(broker(1, 1, "log-loaded", log_end_offset=0, **TP)) is Verdict.UNKNOWN
