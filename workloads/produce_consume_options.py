"""What a scenario may set of the workload ``produce-consume``, and of those that are built on it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nemesis.workloads.kafka.compression import CodecName
from nemesis.workloads.record_values import RecordShape

_Count = Annotated[int, Meta(ge=1, le=1000)]
_Milliseconds = Annotated[int, Meta(ge=1, le=600_000)]
_Percent = Annotated[int, Meta(ge=0, le=100)]
_Bytes = Annotated[int, Meta(ge=24, le=900_000)]


class ProduceConsumeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set."""

    topics: _Count = 2
    partitions: _Count = 3
    replication_factor: _Count = 3
    producers: _Count = 12
    idempotent_producers: Annotated[int, Meta(ge=0, le=1000)] = 0
    """How many of the producers, the first ones, are idempotent; all if there are no more."""
    consumers: _Count = 6
    later_topics: Annotated[int, Meta(ge=0, le=1000)] = 3
    """How many further topics (of one partition) are created during the run."""
    later_topic_interval_ms: _Milliseconds = 12_000
    send_interval_ms: _Milliseconds = 40
    """A producer's pace: the least time from one send to its next."""
    follower_consumers: Annotated[int, Meta(ge=0, le=1000)] = 0
    """How many of the consumers, the last ones, read from a replica that they draw again for each poll (KIP-392)."""
    poll_interval_ms: _Milliseconds = 25
    poll_max_wait_ms: _Milliseconds = 100
    operation_timeout_ms: _Milliseconds = 1_500
    delivery_timeout_ms: _Milliseconds = 6_000
    """How long an idempotent producer goes on sending one record; each attempt has ``operation_timeout_ms``."""
    avoid_ms: _Milliseconds = 400
    """How long a client leaves a partition alone after a failure there."""
    record_bytes: _Bytes = 100
    batch_records: _Count = 1
    """The most records in a batch. Each is an operation of its own, of the process ``producer-0.1`` and so on."""
    batch_partitions: _Count = 1
    """The most partitions to which a produce request brings a batch. An idempotent producer brings one batch."""
    large_record_every: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Every how many-th record is larger than a fetch, which has to return it all the same (KIP-74); 0: none is."""
    poll_partitions: _Count = 1
    """The most partitions of a consumer's fetch. Each is an operation of its own, and each of a consumer's partitions
    belongs to a process of its own: ``consumer-0``, ``consumer-0.1`` and so on."""
    fetch_sessions: bool = False
    """Whether consumers keep a fetch session with each broker (KIP-227)."""
    acks: Annotated[tuple[Literal[-1, 0, 1], ...], Meta(min_length=1)] = (-1,)
    """The acknowledgements for which producers ask, in turn; −1 is all of the ISR. Idempotent producers ask for all."""
    compression: Annotated[tuple[CodecName, ...], Meta(min_length=1)] = ("none",)
    """The codecs from which each batch draws."""
    headers: Annotated[int, Meta(ge=0, le=100)] = 0
    """The most headers of a record."""
    tombstone_percent: _Percent = 0
    """How many of 100 records have no value. Not with ``keys``: a compacted log drops them, with their key."""
    null_key_percent: _Percent = 0
    """How many of 100 records have no key. Not with ``keys``: a compacted log refuses them."""
    keys: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Of how many keys each record has one; the topics are compacted then. 0: they are not."""
    delete_records_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """How often a client deletes most records of a partition; 0: never."""
    move_log_dirs_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """How often a client moves a replica to another log directory of its broker; 0: never."""
    query_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """How often a client asks some broker for offsets, metadata or ends of leader epochs; 0: never."""
    administration_clients: Annotated[int, Meta(ge=0, le=1000)] = 0
    """How many administrators act on topics that are written and read (``administrators``)."""
    administration_interval_ms: _Milliseconds = 1_500
    """An administrator's pace."""
    short_topics: _Count = 2
    """How many names the administrators share: topics that are deleted and created again."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself; msgspec makes a ``ValidationError`` of the error."""
        for name in ("tombstone_percent", "null_key_percent"):
            if self.keys and getattr(self, name):
                raise ValueError(
                    f"{name}: expected 0 with keys {self.keys}, got {getattr(self, name)}"
                )

    @property
    def record_shape(self) -> RecordShape:
        """What the records of a run look like."""
        return RecordShape(
            self.record_bytes,
            self.headers,
            self.tombstone_percent,
            self.null_key_percent,
            self.large_record_every,
        )
