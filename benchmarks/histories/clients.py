"""What clients record: sends of each record and their answers, polls that follow them, final reads.

Producers take turns and wait for their answers; of one send in ``UNANSWERED_EVERY`` nobody knows what came of it (its
record is in the log all the same). One consumer follows, ten to five hundred records a poll, and at the end one reader
reads all of it again. Values are given out in the order of sending, which is not quite the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.histories import columns
from benchmarks.histories.columns import Array
from benchmarks.histories.generate import Part
from benchmarks.histories.shape import SLOT_NS, START_NS, Partition, Shape, Stretch
from nemesis.history.events import NO_ERROR, Kind

PRODUCERS: Final = 16
UNANSWERED_EVERY: Final = 128
ANSWER_SLOTS: Final = 8
"""From a send to its answer: before its producer's next turn."""
POLL_RECORDS: Final = (10, 500)
FINAL_POLLS: Final = 1024
"""In one table."""
TURNED: Final = 4
"""Values differ from their offsets in so many bits."""
_INVOKE, _OK, _INFO = (Kind.INVOKE.value, Kind.OK.value, Kind.INFO.value)


def rows(stretch: Stretch) -> pa.Table:
    """Return the clients' rows of a stretch, sorted by time."""
    return columns.by_time([_sends(stretch), _live_polls(stretch)])


def values_at(partition: Partition, offsets: Array) -> Array:
    """The values that stand at these offsets: the offset with its last bits turned, and the partition's number."""
    turned = offsets ^ ((offsets >> TURNED) & ((1 << TURNED) - 1))
    values: Array = turned | (partition.number << 40)
    return values


def final_reads(shape: Shape, partition: Partition) -> Iterator[pa.Table]:
    """Yield the rows of one reader that reads a partition from its start to its end."""
    start_ns = START_NS + shape.terms * shape.term_ns
    step = POLL_RECORDS[1]
    firsts = np.arange(0, partition.records, step)
    lasts = np.minimum(firsts + step, partition.records)
    for first in range(0, len(firsts), FINAL_POLLS):
        part = slice(first, first + FINAL_POLLS)
        times = start_ns + np.arange(len(firsts))[part] * 2
        yield _polls(partition, "final-0", firsts[part], lasts[part], times)
    end = columns.number(partition.records, 1)
    yield columns.rows(
        {
            "time": columns.number(start_ns + 2 * len(firsts), 1),
            "process": columns.word("final-0", 1),
            "kind": columns.word(Kind.FINAL_READ.value, 1),
            "seq": columns.number(2 * len(firsts), 1),
            **_about(partition, 1),
            "offset": end,
            "high_watermark": end,
            "error": columns.word(NO_ERROR, 1),
        }
    )


def _sends(stretch: Stretch) -> pa.Table:
    """Two rows a record: its send is invoked, and answered ``ANSWER_SLOTS`` later or at the end of the stretch."""
    count = stretch.records
    sent = np.arange(count)
    answered = np.minimum(sent + ANSWER_SLOTS, count) * SLOT_NS - SLOT_NS // 2 + sent % PRODUCERS
    time = np.concatenate((sent * SLOT_NS, answered))
    by_time = np.argsort(time, kind="stable")
    record = np.concatenate((sent, sent))[by_time]
    is_answer = (np.arange(2 * count) >= count)[by_time]
    offset = stretch.first + record
    is_lost = offset % UNANSWERED_EVERY == UNANSWERED_EVERY // 2
    is_ok, is_info = is_answer & ~is_lost, is_answer & is_lost
    kind = np.where(is_ok, 1, np.where(is_info, 2, 0))
    total = len(by_time)
    return columns.rows(
        {
            "time": columns.numbers(stretch.start_ns + time[by_time]),
            "process": columns.words(
                offset % PRODUCERS, [f"producer-{number}" for number in range(PRODUCERS)]
            ),
            "kind": columns.words(kind, (_INVOKE, _OK, _INFO)),
            "seq": columns.numbers(2 * (offset // PRODUCERS) + is_answer),
            "node": columns.numbers(np.full(total, stretch.leader), is_ok),
            "op": columns.numbers(2 * offset),
            "f": columns.word("send", total),
            "value": columns.numbers(values_at(stretch.partition, offset)),
            "acks": columns.number(-1, total),
            **_about(stretch.partition, total),
            "offset": columns.numbers(offset, is_ok),
            "error": columns.words(np.zeros(total), ["REQUEST_TIMED_OUT"], is_info),
        }
    )


def _live_polls(stretch: Stretch) -> pa.Table:
    """One consumer reads all of a stretch, each poll once its last record is answered."""
    draw = np.random.default_rng((*stretch.seed, 1))
    least, most = POLL_RECORDS
    sizes = draw.integers(least, most, endpoint=True, size=stretch.records // least + 1)
    lasts = np.minimum(np.cumsum(sizes), stretch.records)
    lasts = lasts[: int(np.searchsorted(lasts, stretch.records)) + 1]
    firsts = np.append(0, lasts[:-1])
    slots = np.minimum(lasts + ANSWER_SLOTS, stretch.records)
    times = stretch.start_ns + slots * SLOT_NS - SLOT_NS // 4
    times[-1] += 2  # the last one, of few records, may have the slot of the one before it
    first = stretch.first
    return _polls(stretch.partition, "consumer-0", first + firsts, first + lasts, times)


def _polls(
    partition: Partition, process: str, firsts: Array, lasts: Array, times: Array
) -> pa.Table:
    """Polls that returned the offsets from each first up to, not including, each last."""
    is_answer = np.tile([False, True], len(firsts))
    lengths = np.repeat(lasts - firsts, 2)
    offsets = np.arange(firsts[0], lasts[-1])
    total = len(is_answer)
    first = np.repeat(firsts, 2)
    return columns.rows(
        {
            "time": columns.numbers(np.repeat(times, 2) + is_answer),
            "process": columns.word(process, total),
            "kind": columns.words(is_answer.astype(np.int32), (_INVOKE, _OK)),
            "seq": columns.numbers(2 * first + is_answer),
            "node": columns.numbers(
                np.full(total, partition.leader(partition.terms - 1)), is_answer
            ),
            "op": columns.numbers(2 * first + 1),
            "f": columns.word("poll", total),
            "values": columns.lists(lengths, values_at(partition, offsets), is_answer),
            "offsets": columns.lists(lengths, offsets, is_answer),
            **_about(partition, total),
            "offset": columns.numbers(first),
            "high_watermark": columns.numbers(np.repeat(lasts, 2), is_answer),
        }
    )


def _about(partition: Partition, count: int) -> dict[str, pa.Array]:
    return {
        "topic": columns.word(partition.topic, count),
        "topic_id": columns.word(partition.topic_id, count),
        "partition": columns.number(partition.index, count),
    }


CLIENTS: Final = Part(False, rows, final_reads)
