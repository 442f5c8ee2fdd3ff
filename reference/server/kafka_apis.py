"""What a broker answers to each request: the table from API key to handler.

The handlers are in ``nemesis.reference.server.apis``, by group. Those that wait for others (new records, replicas, the
controller) return what is yet to come and are named in ``_WAITING``: RequestChannel lets them finish outside the
handler tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nemesis.reference.protocol.codec import Request
from nemesis.reference.protocol.versions import ApiKey
from nemesis.reference.server.apis.alter_partitions import AlterPartitionApis
from nemesis.reference.server.apis.configs import ConfigApis
from nemesis.reference.server.apis.control import ControlApis
from nemesis.reference.server.apis.coordinators import CoordinatorApis
from nemesis.reference.server.apis.elections import ElectionApis
from nemesis.reference.server.apis.fetch import FetchApis
from nemesis.reference.server.apis.group_offsets import GroupOffsetApis
from nemesis.reference.server.apis.groups import GroupApis
from nemesis.reference.server.apis.log_dirs import LogDirApis
from nemesis.reference.server.apis.metadata import MetadataApis
from nemesis.reference.server.apis.offsets import OffsetApis
from nemesis.reference.server.apis.produce import ProduceApis
from nemesis.reference.server.apis.producer_id_blocks import ProducerIdBlockApis
from nemesis.reference.server.apis.producers import ProducerApis
from nemesis.reference.server.apis.reassignments import ReassignmentApis
from nemesis.reference.server.apis.records import RecordApis
from nemesis.reference.server.apis.topics import TopicApis
from nemesis.reference.server.apis.transaction_coordination import (
    TransactionCoordinatorApis,
)
from nemesis.reference.server.apis.transactions import TransactionApis
from nemesis.reference.server.kafka_request_handler import Later

_WAITING: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
    }
)


class KafkaApis:
    """Dispatches requests; implements ``nemesis.reference.server.kafka_request_handler.RequestHandler``."""

    def __init__(
        self,
        *,
        produce: ProduceApis,
        fetch: FetchApis,
        offsets: OffsetApis,
        records: RecordApis,
        metadata: MetadataApis,
        control: ControlApis,
        alter_partitions: AlterPartitionApis,
        topics: TopicApis,
        configs: ConfigApis,
        reassignments: ReassignmentApis,
        elections: ElectionApis,
        producers: ProducerApis,
        producer_id_blocks: ProducerIdBlockApis,
        transactions: TransactionApis,
        transaction_coordination: TransactionCoordinatorApis,
        log_dirs: LogDirApis,
        coordinators: CoordinatorApis,
        groups: GroupApis,
        group_offsets: GroupOffsetApis,
    ) -> None:
        self._groups = groups
        self._handlers_of_listener: dict[int, Callable[[Any, str], Any | Later]] = {
            ApiKey.PRODUCE: produce.handle_produce,
            ApiKey.FETCH: fetch.handle_fetch,
            ApiKey.METADATA: metadata.handle_metadata,
            ApiKey.DESCRIBE_CLUSTER: metadata.handle_describe_cluster,
            ApiKey.FIND_COORDINATOR: coordinators.handle_find_coordinator,
        }
        """Those whose answers say where brokers are: by the listener that was asked."""
        self._handlers: dict[int, Callable[[Any], Any | Later]] = {
            ApiKey.DELETE_RECORDS: records.handle_delete_records,
            ApiKey.LIST_OFFSETS: offsets.handle_list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.handle_offset_for_leader_epoch,
            ApiKey.API_VERSIONS: metadata.handle_api_versions,
            ApiKey.SYNC_GROUP: groups.handle_sync_group,
            ApiKey.HEARTBEAT: groups.handle_heartbeat,
            ApiKey.LEAVE_GROUP: groups.handle_leave_group,
            ApiKey.DESCRIBE_GROUPS: groups.handle_describe_groups,
            ApiKey.LIST_GROUPS: groups.handle_list_groups,
            ApiKey.DELETE_GROUPS: groups.handle_delete_groups,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.handle_consumer_group_heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: groups.handle_consumer_group_describe,
            ApiKey.OFFSET_COMMIT: group_offsets.handle_offset_commit,
            ApiKey.TXN_OFFSET_COMMIT: group_offsets.handle_txn_offset_commit,
            ApiKey.OFFSET_FETCH: group_offsets.handle_offset_fetch,
            ApiKey.OFFSET_DELETE: group_offsets.handle_offset_delete,
            ApiKey.LEADER_AND_ISR: control.handle_leader_and_isr,
            ApiKey.STOP_REPLICA: control.handle_stop_replica,
            ApiKey.UPDATE_METADATA: control.handle_update_metadata,
            ApiKey.CONTROLLED_SHUTDOWN: elections.handle_controlled_shutdown,
            ApiKey.CREATE_TOPICS: topics.handle_create_topics,
            ApiKey.DELETE_TOPICS: topics.handle_delete_topics,
            ApiKey.CREATE_PARTITIONS: topics.handle_create_partitions,
            ApiKey.DESCRIBE_CONFIGS: configs.handle_describe_configs,
            ApiKey.ALTER_CONFIGS: configs.handle_alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.handle_incremental_alter_configs,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
                reassignments.handle_alter_partition_reassignments
            ),
            ApiKey.LIST_PARTITION_REASSIGNMENTS: reassignments.handle_list_partition_reassignments,
            ApiKey.ALTER_REPLICA_LOG_DIRS: log_dirs.handle_alter_replica_log_dirs,
            ApiKey.DESCRIBE_LOG_DIRS: log_dirs.handle_describe_log_dirs,
            ApiKey.ELECT_LEADERS: elections.handle_elect_leaders,
            ApiKey.INIT_PRODUCER_ID: producers.handle_init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: transaction_coordination.handle_add_partitions_to_txn,
            ApiKey.ADD_OFFSETS_TO_TXN: transaction_coordination.handle_add_offsets_to_txn,
            ApiKey.END_TXN: transaction_coordination.handle_end_txn,
            ApiKey.LIST_TRANSACTIONS: transaction_coordination.handle_list_transactions,
            ApiKey.DESCRIBE_TRANSACTIONS: transaction_coordination.handle_describe_transactions,
            ApiKey.WRITE_TXN_MARKERS: transactions.handle_write_txn_markers,
            ApiKey.DESCRIBE_PRODUCERS: transactions.handle_describe_producers,
            ApiKey.ALTER_PARTITION: alter_partitions.handle_alter_partition,
            ApiKey.ALLOCATE_PRODUCER_IDS: producer_id_blocks.handle_allocate_producer_ids,
        }

    def waits(self, request: Request) -> bool:
        """True when answering may take as long as others take."""
        return request.api_key in _WAITING

    def handle(self, request: Request, listener_name: str, client_host: str) -> Any | Later:
        """The kio response, or None for a request that gets none (Produce with acks=0); or what it will be.

        Raises ``CloseConnectionError``, at once or later, when the only answer is to close the connection.
        """
        if request.api_key == ApiKey.JOIN_GROUP:
            return self._groups.handle_join_group(
                request.message, request.client_id or "", client_host
            )
        handler = self._handlers_of_listener.get(request.api_key)
        if handler is not None:
            return handler(request.message, listener_name)
        return self._handlers[request.api_key](request.message)
