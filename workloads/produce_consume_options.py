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
    """Topics that are created before the run."""
    partitions: _Count = 3
    """Partitions of each topic."""
    replication_factor: _Count = 3
    """Replicas of each partition; at most the number of brokers."""
    producers: _Count = 12
    """Producer processes."""
    idempotent_producers: Annotated[int, Meta(ge=0, le=1000)] = 0
    """This many of the producers are idempotent, or all if the number is larger."""
    consumers: _Count = 6
    """Consumer processes without a group. They share the partitions and read each from its beginning."""
    later_topics: Annotated[int, Meta(ge=0, le=1000)] = 3
    """Further topics, of one partition each, that are created during the run."""
    later_topic_interval_ms: _Milliseconds = 12_000
    """Milliseconds between the creations of further topics (``later_topics``)."""
    send_interval_ms: _Milliseconds = 40
    """Each producer sends at most once in this many milliseconds."""
    follower_consumers: Annotated[int, Meta(ge=0, le=1000)] = 0
    """For each poll, this many of the consumers choose the leader or a follower at random to read from (KIP-392)."""
    committed_consumers: Annotated[int, Meta(ge=0, le=1000)] = 0
    """This many of the consumers read committed records only (``isolation.level=read_committed``)."""
    poll_interval_ms: _Milliseconds = 25
    """Each consumer polls at most once in this many milliseconds."""
    poll_max_wait_ms: _Milliseconds = 100
    """A broker waits this long for records before it answers a poll with none (``fetch.max.wait.ms``)."""
    operation_timeout_ms: _Milliseconds = 1_500
    """A client waits this long for the answer to a request. Then the outcome of the operation is unknown."""
    delivery_timeout_ms: _Milliseconds = 6_000
    """An idempotent producer repeats a send for this long; ``operation_timeout_ms`` limits each attempt."""
    avoid_ms: _Milliseconds = 400
    """After an error on a partition, a client does not use it for this long."""
    record_bytes: _Bytes = 100
    """Bytes of a record's value."""
    batch_records: _Count = 1
    """The most records in a batch. In the history each is an operation, the second of process ``producer-0.1``."""
    batch_partitions: _Count = 1
    """The most partitions in one produce request, with a batch for each. Idempotent producers send one batch."""
    large_record_every: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """With 20, every 20th record is larger than a fetch, which must still return it (KIP-74); 0: no record is."""
    poll_partitions: _Count = 1
    """The most partitions in one fetch. In the history, each partition of a consumer has a process, such as
    ``consumer-0.1``."""
    fetch_sessions: bool = False
    """``true``: consumers keep a fetch session with each broker, and send only what has changed (KIP-227)."""
    acks: Annotated[tuple[Literal[-1, 0, 1], ...], Meta(min_length=1)] = (-1,)
    """``acks`` of the producers, in turn. −1: all of the ISR. Idempotent producers always use −1."""
    compression: Annotated[tuple[CodecName, ...], Meta(min_length=1)] = ("none",)
    """Each batch is compressed with a codec that is drawn from these."""
    headers: Annotated[int, Meta(ge=0, le=100)] = 0
    """The most headers of a record."""
    tombstone_percent: _Percent = 0
    """Percentage of records without a value. With ``keys`` such a tombstone deletes its key: after
    ``delete.retention.ms`` compaction removes it, too."""
    null_key_percent: _Percent = 0
    """Percentage of records without a key. Not with ``keys``: compacted topics refuse them."""
    keys: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Each record has one of this many keys, and topics are compacted; 0: topics are not compacted."""
    delete_records_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """Milliseconds between deletions of most records of a partition by a client; 0: none."""
    move_log_dirs_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """Milliseconds between moves of a replica to another log directory of its broker; 0: none."""
    query_interval_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    """Milliseconds between questions to a broker for offsets, metadata or ends of leader epochs; 0: none."""
    administration_clients: Annotated[int, Meta(ge=0, le=1000)] = 0
    """Clients that delete, create, grow, move and configure topics while others use them."""
    administration_interval_ms: _Milliseconds = 1_500
    """Each of the ``administration_clients`` makes at most one request in this many milliseconds."""
    short_topics: _Count = 2
    """The number of topics that the ``administration_clients`` delete and create again."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself; msgspec makes a ``ValidationError`` of the error."""
        if self.keys and self.null_key_percent:
            raise ValueError(
                f"null_key_percent: expected 0 with keys {self.keys}, got {self.null_key_percent}"
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
