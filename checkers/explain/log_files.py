"""Why both cannot be: the batches of a log, and what is written beside them."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def log_files_agree(case: Case) -> str:
    if case.first_of(Kind.STORED_INDEX_ENTRY) is not None:
        return (
            "Who looks up an offset or a time begins to scan where the index says. What lies before that is not "
            "found, though the log has it."
        )
    if case.first_of(Kind.STORED_EPOCH) is not None:
        return (
            "Epochs are how replicas find where their logs part. With another epoch than its batches have, this "
            "replica keeps what it should cut, or cuts what it should keep."
        )
    if case.first_of(Kind.STORED_SNAPSHOT, Kind.STORED_PRODUCER) is not None:
        return (
            "A broker that starts remembers producers from this snapshot, and does not look at the batches below its "
            "offset. It would append again what was sent again, or refuse what is next."
        )
    if case.first_of(Kind.STORED_BATCH) is not None:
        return "Files and batches of one log, read after its broker was stopped, have to agree on every offset."
    return (
        "A checkpoint states what was done up to an offset of this log. What it states is not so in the files that "
        "were read with it."
    )


def segments_roll(case: Case) -> str:
    del case
    return (
        "A segment takes batches as long as they fit into segment.bytes, and the next batch begins a new segment. "
        "No setting of this topic, and no time between its records, explains another size."
    )
