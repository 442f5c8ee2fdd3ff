"""Which APIs a broker offers, in which versions: Kafka 3.9 with ZooKeeper, but for the old record formats.

librdkafka takes low versions in ApiVersions for features: without Produce from version 0 it silently
drops gzip and snappy, without FindCoordinator from 0 lz4. So both are advertised from 0; Produce below
3 (message formats 0 and 1) is then refused by its handler. Fetch below 4 would need the same formats on the
way back and is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    ALTER_PARTITION = 56
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


@dataclass(frozen=True, slots=True)
class VersionRange:
    lowest: int
    highest: int


OFFERED = MappingProxyType(
    {
        ApiKey.PRODUCE: VersionRange(0, 11),
        ApiKey.FETCH: VersionRange(4, 17),
        ApiKey.LIST_OFFSETS: VersionRange(0, 9),
        ApiKey.METADATA: VersionRange(0, 12),
        ApiKey.LEADER_AND_ISR: VersionRange(0, 7),
        ApiKey.STOP_REPLICA: VersionRange(0, 4),
        ApiKey.UPDATE_METADATA: VersionRange(0, 8),
        ApiKey.CONTROLLED_SHUTDOWN: VersionRange(0, 3),
        ApiKey.OFFSET_COMMIT: VersionRange(0, 9),
        ApiKey.OFFSET_FETCH: VersionRange(0, 9),
        ApiKey.FIND_COORDINATOR: VersionRange(0, 6),
        ApiKey.JOIN_GROUP: VersionRange(0, 9),
        ApiKey.HEARTBEAT: VersionRange(0, 4),
        ApiKey.LEAVE_GROUP: VersionRange(0, 5),
        ApiKey.SYNC_GROUP: VersionRange(0, 5),
        ApiKey.DESCRIBE_GROUPS: VersionRange(0, 5),
        ApiKey.LIST_GROUPS: VersionRange(0, 5),
        ApiKey.API_VERSIONS: VersionRange(0, 4),
        ApiKey.CREATE_TOPICS: VersionRange(0, 7),
        ApiKey.DELETE_TOPICS: VersionRange(0, 6),
        ApiKey.DELETE_RECORDS: VersionRange(0, 2),
        ApiKey.INIT_PRODUCER_ID: VersionRange(0, 5),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: VersionRange(0, 4),
        ApiKey.ADD_PARTITIONS_TO_TXN: VersionRange(0, 5),
        ApiKey.ADD_OFFSETS_TO_TXN: VersionRange(0, 4),
        ApiKey.END_TXN: VersionRange(0, 4),
        ApiKey.WRITE_TXN_MARKERS: VersionRange(0, 1),
        ApiKey.TXN_OFFSET_COMMIT: VersionRange(0, 4),
        ApiKey.DESCRIBE_CONFIGS: VersionRange(0, 4),
        ApiKey.ALTER_CONFIGS: VersionRange(0, 2),
        ApiKey.ALTER_REPLICA_LOG_DIRS: VersionRange(0, 2),
        ApiKey.DESCRIBE_LOG_DIRS: VersionRange(0, 4),
        ApiKey.CREATE_PARTITIONS: VersionRange(0, 3),
        ApiKey.DELETE_GROUPS: VersionRange(0, 2),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: VersionRange(0, 0),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: VersionRange(0, 0),
        ApiKey.ELECT_LEADERS: VersionRange(0, 2),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: VersionRange(0, 1),
        ApiKey.OFFSET_DELETE: VersionRange(0, 0),
        ApiKey.ALTER_PARTITION: VersionRange(0, 3),
        ApiKey.DESCRIBE_CLUSTER: VersionRange(0, 1),
        ApiKey.DESCRIBE_PRODUCERS: VersionRange(0, 0),
        ApiKey.DESCRIBE_TRANSACTIONS: VersionRange(0, 0),
        ApiKey.LIST_TRANSACTIONS: VersionRange(0, 1),
        ApiKey.ALLOCATE_PRODUCER_IDS: VersionRange(0, 0),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: VersionRange(0, 0),
        ApiKey.CONSUMER_GROUP_DESCRIBE: VersionRange(0, 0),
    }
)

CONTROL_APIS = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA})
"""What the controller sends to brokers: served apart from, and never behind, the data plane."""


_OFFERED_VERSIONS = frozenset(
    (int(api_key), version)
    for api_key, versions in OFFERED.items()
    for version in range(versions.lowest, versions.highest + 1)
)


def is_offered(api_key: int, api_version: int) -> bool:
    """True when the broker answers that version of that API."""
    return (api_key, api_version) in _OFFERED_VERSIONS
