"""KafkaAdmin: a client that creates, changes and deletes topics, moves replicas, has leaders elected, looks at logs.

One attempt per operation, as with ``KafkaClient``. Everything but what concerns log directories, records and settings
goes to the controller that the metadata names. A failure is definite only when the answer is given before anything is
written; NOT_CONTROLLER of AlterPartitionReassignments is not, since a controller that loses its office half-way says so
too.

Versions are those of Kafka 3.9: CreateTopics 7, DeleteTopics 6, CreatePartitions 3, AlterPartitionReassignments 0,
ListPartitionReassignments 0, ElectLeaders 2, AlterReplicaLogDirs 2, DescribeLogDirs 4, DeleteRecords 2 (to the
partition's leader), IncrementalAlterConfigs 1 (to any broker).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from kio.schema.alter_partition_reassignments.v0 import request as alter_reassignments
from kio.schema.alter_replica_log_dirs.v2 import request as alter_log_dirs
from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.delete_records.v2 import request as delete_records
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.describe_log_dirs.v4 import request as describe_log_dirs
from kio.schema.elect_leaders.v2 import request as elect_leaders
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import request as alter_configs
from kio.schema.list_partition_reassignments.v0 import request as list_reassignments
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import BrokerError
from nemesis.workloads.kafka.timeouts import milliseconds

TopicPartition = tuple[str, int]

_PREFERRED = i8(0)
_TOPIC = i8(2)
_SET, _DELETE = i8(0), i8(1)
_REFUSED: Final = frozenset(
    {
        ErrorCode.not_controller,
        ErrorCode.topic_already_exists,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_topic_exception,
        ErrorCode.invalid_partitions,
        ErrorCode.invalid_replication_factor,
        ErrorCode.invalid_replica_assignment,
        ErrorCode.invalid_config,
        ErrorCode.invalid_request,
        ErrorCode.topic_deletion_disabled,
        ErrorCode.reassignment_in_progress,
    }
)
"""What CreateTopics, DeleteTopics and CreatePartitions answer before anything is written."""
_NOT_MOVED: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_replica_assignment,
        ErrorCode.no_reassignment_in_progress,
    }
)
"""The same of AlterPartitionReassignments."""
_NOT_IN_ANOTHER_LOG_DIR: Final = frozenset(
    {
        ErrorCode.log_dir_not_found,
        ErrorCode.replica_not_available,
        ErrorCode.invalid_topic_exception,
    }
)
"""The same of AlterReplicaLogDirs."""
_NOT_ELECTED: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.election_not_needed,
        ErrorCode.preferred_leader_not_available,
        ErrorCode.eligible_leaders_not_available,
        ErrorCode.invalid_request,
    }
)
_NOT_CONFIGURED: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_topic_exception,
        ErrorCode.invalid_config,
        ErrorCode.invalid_request,
    }
)
"""The same of IncrementalAlterConfigs."""


class KafkaAdmin(KafkaClient):
    """A client that administers. Every method raises ``KafkaError``."""

    async def delete_records(
        self, topic: str, partition: int, offset: int, *, timeout_s: float
    ) -> int:
        """Delete the records below the offset; returns the low watermark, once all live replicas have followed."""
        request = delete_records.DeleteRecordsRequest(
            topics=(
                delete_records.DeleteRecordsTopic(
                    name=_name(topic),
                    partitions=(
                        delete_records.DeleteRecordsPartition(
                            partition_index=i32(partition), offset=i64(offset)
                        ),
                    ),
                ),
            ),
            timeout=milliseconds(int(timeout_s * 1000)),
        )
        leader = self.metadata.leader(topic, partition)
        response = await self.request(-1 if leader is None else leader, request, timeout_s)
        result = response.topics[0].partitions[0]
        if result.error_code is not ErrorCode.none:
            raise BrokerError(result.error_code)
        return int(result.low_watermark)

    async def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        timeout_s: float,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Create a topic with these settings of its own; returns when all its partitions have leaders."""
        request = create_topics.CreateTopicsRequest(
            topics=(
                create_topics.CreatableTopic(
                    name=_name(topic),
                    num_partitions=i32(partitions),
                    replication_factor=i16(replication_factor),
                    assignments=(),
                    configs=tuple(
                        create_topics.CreatableTopicConfig(name=name, value=value)
                        for name, value in configs.items()
                    ),
                ),
            ),
            timeout=_timeout(timeout_s),
        )
        response = await self._ask_controller(request, timeout_s)
        _check(response.topics[0].error_code, _REFUSED)

    async def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        """Have a topic deleted; returns when the controller tells nobody of it any more, its replicas may be there."""
        state = delete_topics.DeleteTopicState(name=_name(topic), topic_id=None)
        request = delete_topics.DeleteTopicsRequest(topics=(state,), timeout=_timeout(timeout_s))
        response = await self._ask_controller(request, timeout_s)
        _check(response.responses[0].error_code, _REFUSED)

    async def create_partitions(self, topic: str, *, count: int, timeout_s: float) -> None:
        """Let a topic have so many partitions; returns when all have leaders."""
        grown = create_partitions.CreatePartitionsTopic(
            name=_name(topic), count=i32(count), assignments=None
        )
        request = create_partitions.CreatePartitionsRequest(
            topics=(grown,), timeout=_timeout(timeout_s), validate_only=False
        )
        response = await self._ask_controller(request, timeout_s)
        _check(response.results[0].error_code, _REFUSED)

    async def set_topic_config(
        self, topic: str, setting: str, value: str | None, *, timeout_s: float
    ) -> None:
        """Give a topic a setting of its own, or with None take it away; returns when that is written."""
        change = alter_configs.AlterableConfig(
            name=setting, config_operation=_DELETE if value is None else _SET, value=value
        )
        resource = alter_configs.AlterConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configs=(change,)
        )
        request = alter_configs.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=False
        )
        response = await self.ask_any(request, timeout_s)
        _check(response.responses[0].error_code, _NOT_CONFIGURED)

    async def reassign(
        self, topic: str, partition: int, replicas: tuple[int, ...] | None, *, timeout_s: float
    ) -> None:
        """Move a partition to these replicas, or with None cancel its move; returns when that has begun."""
        wanted = alter_reassignments.ReassignablePartition(
            partition_index=i32(partition),
            replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
        )
        moved = alter_reassignments.ReassignableTopic(name=_name(topic), partitions=(wanted,))
        request = alter_reassignments.AlterPartitionReassignmentsRequest(
            timeout=_timeout(timeout_s), topics=(moved,)
        )
        response = await self._ask_controller(request, timeout_s)
        _check(response.error_code, _NOT_MOVED)
        _check(response.responses[0].partitions[0].error_code, _NOT_MOVED)

    async def reassignments(self, *, timeout_s: float) -> list[TopicPartition]:
        """Return the partitions whose reassignment is in progress."""
        request = list_reassignments.ListPartitionReassignmentsRequest(
            timeout=_timeout(timeout_s), topics=None
        )
        response = await self._ask_controller(request, timeout_s)
        _check(response.error_code, frozenset())
        return [
            (str(t.name), int(p.partition_index)) for t in response.topics for p in t.partitions
        ]

    async def elect_preferred_leader(self, topic: str, partition: int, *, timeout_s: float) -> None:
        """Let the first replica of a partition lead it; returns when it does."""
        asked = elect_leaders.TopicPartitions(topic=_name(topic), partitions=(i32(partition),))
        request = elect_leaders.ElectLeadersRequest(
            election_type=_PREFERRED, topic_partitions=(asked,), timeout=_timeout(timeout_s)
        )
        response = await self._ask_controller(request, timeout_s)
        _check(response.error_code, _NOT_ELECTED)
        _check(response.replica_election_results[0].partition_result[0].error_code, _NOT_ELECTED)

    async def log_dirs(self, address: tuple[str, int], *, timeout_s: float) -> list[TopicPartition]:
        """Return of which partitions the broker there keeps a log, in order. An offline log directory is an error."""
        request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
        response = await self.ask(address, request, timeout_s)
        _check(response.error_code, frozenset())
        for result in response.results:
            _check(result.error_code, frozenset())
        return sorted(
            {
                (str(topic.name), int(partition.partition_index))
                for result in response.results
                for topic in result.topics
                for partition in topic.partitions
            }
        )

    async def replicas_by_log_dir(
        self, node: int, *, timeout_s: float
    ) -> dict[str, set[TopicPartition]]:
        """Return of which partitions a broker has logs, by log directory, but for those that are offline.

        One that is on its way has two logs.
        """
        request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
        response = await self.request(node, request, timeout_s)
        return {
            str(result.log_dir): {
                (str(topic.name), int(partition.partition_index))
                for topic in result.topics
                for partition in topic.partitions
            }
            for result in response.results
            if result.error_code is ErrorCode.none
        }

    async def alter_replica_log_dir(
        self, node: int, tp: TopicPartition, log_dir: str, *, timeout_s: float
    ) -> None:
        """Let a broker begin to move its replica to the log directory."""
        topics = (
            alter_log_dirs.AlterReplicaLogDirTopic(name=_name(tp[0]), partitions=(i32(tp[1]),)),
        )
        request = alter_log_dirs.AlterReplicaLogDirsRequest(
            dirs=(alter_log_dirs.AlterReplicaLogDir(path=log_dir, topics=topics),)
        )
        response = await self.request(node, request, timeout_s)
        _check(response.results[0].partitions[0].error_code, _NOT_IN_ANOTHER_LOG_DIR)

    async def _ask_controller(self, request: Any, timeout_s: float) -> Any:
        return await self.request(self.metadata.controller_id, request, timeout_s)


def _check(code: ErrorCode, definite: frozenset[ErrorCode]) -> None:
    """Raise ``BrokerError`` unless all went well; the codes that are ``definite`` say that nothing was done."""
    if code is not ErrorCode.none:
        raise BrokerError(code, definite=code in definite)


def _name(topic: str) -> TopicName:
    return cast("TopicName", topic)


def _timeout(timeout_s: float) -> i32Timedelta:
    return milliseconds(int(timeout_s * 1000))
