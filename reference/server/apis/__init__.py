"""The requests that a broker answers, by group.

``data`` (Produce, Fetch), ``offsets`` (ListOffsets, OffsetForLeaderEpoch), ``metadata`` (ApiVersions,
Metadata, FindCoordinator), ``control`` (LeaderAndIsr, StopReplica, UpdateMetadata) and ``controller``
(CreateTopics, AlterPartition). Each translates kio messages of all offered versions to the values of
``reference.model`` and back; ``reference.server.kafka_apis`` dispatches to them.
"""
