"""Why both cannot be: the batches of a log, and what is written beside them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_files_agree(case: Case) -> str:
    if case.first_of(Kind.STORED_INDEX_ENTRY) is not None:
        return (
            "A broker that looks up an offset or a time begins to read where the index says. It does not find "
            "records before that, although the log has them."
        )
    if case.first_of(Kind.STORED_EPOCH) is not None:
        return (
            "Replicas compare their logs by epochs. Here the checkpoint of epochs differs from the batches, so this "
            "replica will keep records that it should truncate, or truncate records that it should keep."
        )
    if case.first_of(Kind.STORED_SNAPSHOT, Kind.STORED_PRODUCER) is not None:
        return (
            "When a broker starts, it reads the state of producers from this snapshot, and does not read the batches "
            "below its offset. With this snapshot it would append a repeated batch again, or refuse the producer's "
            "next batch."
        )
    if case.first_of(Kind.STORED_BATCH) is not None:
        return "The files of a log, read after its broker was stopped, must agree on each offset."
    return (
        "A checkpoint states up to which offset a log was synced or compacted. The log files, read at the same time, "
        "contradict it."
    )


def segments_roll(case: Case) -> str:
    del case
    return (
        "A broker appends batches to a segment as long as they fit into segment.bytes; then it begins a new segment. "
        "No setting of this topic, and no time between its records, explains the size of this segment."
    )
