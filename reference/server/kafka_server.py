"""One broker: its parts, how they hang together, and the order in which they start and stop.

Start: ZooKeeper session, cluster id, logs, replicas, listener, controller. The controller part comes last
because it registers the broker, and a registered broker must be able to answer. What a controller says before
that waits: it was said to an earlier life. Stop: the listener, replicas, logs, controller, session, as Kafka does, and
only those that had started: the high watermarks of logs that were never loaded must not be written. A broker that is
told to stop asks the controller to let it go first (``controlled_shutdown``).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from random import Random  # noqa: TID251  # the type; the instance is an argument
from typing import Any, Final

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.coordinator.group.group_coordinator import GroupCoordinator
from nemesis.reference.coordinator.group.group_metadata_manager import GroupMetadataManager
from nemesis.reference.coordinator.transaction.transaction_coordinator import (
    TransactionCoordinator,
)
from nemesis.reference.coordinator.transaction.transaction_state_manager import (
    TransactionStateManager,
)
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log_config import log_config_of
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    TRANSACTION_STATE_TOPIC_NAME,
    Broker,
)
from nemesis.reference.network.socket_server import SocketServer
from nemesis.reference.ports import Disk, SocketBuffers, WallClock, ZooKeeperClient
from nemesis.reference.protocol import codec as wire_format
from nemesis.reference.protocol.codec import Codec
from nemesis.reference.server.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from nemesis.reference.server.alter_partition_manager import (
    AlterPartitionManager,
    DefaultAlterPartitionManager,
)
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
from nemesis.reference.server.auto_topic_creation_manager import AutoTopicCreationManager
from nemesis.reference.server.broker_metadata_checkpoint import (
    BrokerMetadata,
    BrokerMetadataCheckpoint,
    BrokerMetadataError,
)
from nemesis.reference.server.client_quota_manager import QuotaManagers
from nemesis.reference.server.config_admin_manager import ConfigAdminManager
from nemesis.reference.server.config_handlers import (
    BrokerConfigHandler,
    ClientIdConfigHandler,
    TopicConfigHandler,
)
from nemesis.reference.server.config_helper import ConfigHelper
from nemesis.reference.server.connection import connection_factory
from nemesis.reference.server.controlled_shutdown import controlled_shutdown
from nemesis.reference.server.coordinator_replicas import CoordinatorReplicas
from nemesis.reference.server.coordinator_roles import CoordinatorRoles
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from nemesis.reference.server.fetch_manager import FetchManager
from nemesis.reference.server.kafka_apis import KafkaApis
from nemesis.reference.server.kafka_request_handler import KafkaRequestHandlerPool
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_manager import ReplicaManager
from nemesis.reference.server.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from nemesis.reference.server.transaction_verifications import TransactionVerifications
from nemesis.reference.server.zk_admin_manager import ZkAdminManager
from nemesis.reference.server.zk_alter_partition_manager import ZkAlterPartitionManager
from nemesis.reference.server.zk_config_manager import ZkConfigManager
from nemesis.reference.server.zk_producer_id_manager import ZkProducerIdManager
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import config_znodes
from nemesis.reference.zk.errors import ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import random_topic_id, topic_id_to_string

_logger = logging.getLogger(__name__)

CONTROL_PLANE_NUM_IO_THREADS: Final = 1
"""The controller's requests are served first come, first served; Kafka cannot be told otherwise."""
STARTUP_ERRORS: Final = (OSError, KafkaStorageError, BrokerMetadataError)
"""The errors with which a broker refuses to start (``KafkaServer.startup``)."""


class KafkaServer:
    """Everything of one broker process that is not an adapter. Its configuration has a broker id by now."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        disk: Disk,
        zookeeper: ZooKeeperClient,
        tracer: Tracer,
        rng: Random,
        wall_clock: WallClock,
        codec: Codec = wire_format,
        socket_buffers: SocketBuffers | None = None,
    ) -> None:
        self._config = config
        self._dynamic_config = DynamicBrokerConfig(config)
        self._zookeeper = zookeeper
        self._tracer = tracer
        self._rng = rng
        self._started = AsyncExitStack()
        self._is_complete = False
        self.metadata_cache = MetadataCache(config.broker_id)
        self.log_manager = LogManager(config, disk, wall_clock=wall_clock, tracer=tracer)
        self._checkpoint = BrokerMetadataCheckpoint(disk, config.log_dirs)
        self._zk_client = KafkaZkClient(zookeeper, tracer=tracer)
        self._connect = connect = connection_factory(config, codec)
        self.controller = KafkaController(
            config,
            zk_client=self._zk_client,
            tracer=tracer,
            broker=Broker(config.broker_id, config.listener_config.advertised, config.broker_rack),
            connection_factory=lambda: connect(f"controller-{config.broker_id}"),
            wall_clock=wall_clock,
            new_topic_id=lambda: random_topic_id(rng),
            unclean_leader_election_enable=(
                lambda: self._dynamic_config.current.unclean_leader_election_enable
            ),
        )
        self._topic_configs = TopicConfigHandler(self.log_manager, self._zk_client, self.controller)
        self._broker_configs = BrokerConfigHandler(self._dynamic_config, self._zk_client)
        self.quotas = QuotaManagers()
        self._client_configs = ClientIdConfigHandler(self.quotas, self._zk_client)
        self._dynamic_config.add_reconfigurable(self._reconfigure)
        self._config_manager = ZkConfigManager(
            self._zk_client,
            handlers={
                config_znodes.TOPICS: self._topic_configs,
                config_znodes.BROKERS: self._broker_configs,
                config_znodes.CLIENTS: self._client_configs,
            },
            wall_clock=wall_clock,
        )
        self._scheduler = scheduler = KafkaScheduler(
            on_turn=lambda name: tracer.event(Kind.JOB_STARTED, step=name)
        )
        self.replica_manager = ReplicaManager(
            config,
            tracer=tracer,
            log_manager=self.log_manager,
            metadata_cache=self.metadata_cache,
            alter_partition_manager=self._alter_partition_manager(scheduler),
            scheduler=scheduler,
            broker_epoch=self._broker_epoch,
            connect=connect,
            on_log_dir_failure=self._on_log_dir_failure,
        )
        self._wall_clock = wall_clock
        self._verifiers = AddPartitionsToTxnManager(
            config, metadata_cache=self.metadata_cache, connect=connect
        )
        self._verifications = TransactionVerifications(
            partition_of=self.replica_manager.hosted.partition,
            coordinators=self._verifiers,
            is_enabled=config.transaction_partition_verification_enable,
        )
        self.group_coordinator = self._group_coordinator()
        self._producer_ids = ZkProducerIdManager(config.broker_id, self._zk_client.producer_ids)
        self._markers = TransactionMarkerChannelManager(
            config, metadata_cache=self.metadata_cache, connect=connect
        )
        self._transaction_coordinator = self._new_transaction_coordinator()
        self.replica_manager.add_role_listener(
            CoordinatorRoles(
                {
                    GROUP_METADATA_TOPIC_NAME: self.group_coordinator,
                    TRANSACTION_STATE_TOPIC_NAME: self._transaction_coordinator,
                },
                self.group_coordinator.remove_offsets_of,
            )
        )
        self._informing: list[asyncio.Task[None]] = []
        self._socket_server = SocketServer(config, codec=codec, socket_buffers=socket_buffers)

    async def startup(self) -> None:
        """Return once the broker listens, is registered and has tried to be elected once (should the session expire
        at the end of it, the latter two are left to the next session).

        Raises OSError when the port is taken, ``KafkaStorageError`` when no log directory can be read and
        ``BrokerMetadataError`` when one is another broker's. Waits for ZooKeeper as long as it takes.
        """
        self._tracer.event(Kind.BROKER_STARTED, **_traced_settings(self._config))
        self._started.push_async_callback(self._zookeeper.close)
        await self._zookeeper.start()
        self._started.callback(self._stop_telling)
        cluster_id = await self._zk_client.session.retry_across_sessions(self._find_cluster)
        session = self._zk_client.session
        await session.retry_across_sessions(self._broker_configs.initialize)
        await session.retry_across_sessions(self._client_configs.initialize)
        self._started.push_async_callback(self.controller.shutdown)
        topics = await session.retry_across_sessions(self._zk_client.topics.get_all_topics)
        await self._topic_configs.fetch_topic_configs(topics)
        self._load_logs(BrokerMetadata(cluster_id, self._config.broker_id))
        self._started.callback(self.log_manager.close)
        self.log_manager.startup(self._scheduler, self.replica_manager.storage_failures.note)
        self._started.push_async_callback(self.replica_manager.shutdown)
        await self.replica_manager.startup()
        self._started.callback(self.group_coordinator.shutdown)
        self._started.push_async_callback(self._verifiers.shutdown)
        self._started.push_async_callback(self._markers.shutdown)
        self._started.callback(self._transaction_coordinator.shutdown)
        self._start_request_handlers(self._apis(cluster_id))
        self._started.push_async_callback(self._socket_server.shutdown)
        await self._socket_server.startup()
        await self.controller.startup()
        self._started.push_async_callback(self._config_manager.shutdown)
        self._config_manager.startup()
        self._is_complete = True

    async def await_failure(self) -> None:
        """Return when no log directory is left. Whoever runs the broker then halts it, as Kafka does, with no shutdown:
        its session ends by itself."""
        await self.replica_manager.storage_failures.all_log_dirs_failed.wait()
        _logger.critical(
            "all log directories have failed: %s; the broker halts",
            ", ".join(self._config.log_dirs),
        )

    async def shutdown(self) -> None:
        """Stop what has been started, also after a start that failed; the znodes go with the session."""
        await self._started.aclose()

    async def controlled_shutdown(self) -> None:
        """Ask the controller to take this broker's partitions, for as long as the configuration says.

        For a broker that is told to stop; one that had not started whole leaves nothing to be taken. Raises nothing.
        """
        if not self._is_complete or not self._config.controlled_shutdown_enable:
            return
        let_go = await controlled_shutdown(
            self._config,
            metadata_cache=self.metadata_cache,
            broker_epoch=self._broker_epoch,
            connection=self._connect(f"broker-{self._config.broker_id}-controlled-shutdown"),
        )
        if not let_go:
            _logger.warning("stopping although the controller has not let this broker go")

    def _group_coordinator(self) -> GroupCoordinator:
        groups = GroupMetadataManager(
            self._config,
            logs=self._coordinator_replicas(),
            scheduler=self._scheduler,
            wall_clock=self._wall_clock,
            retrieve_partition_count=lambda: self._count_partitions(
                GROUP_METADATA_TOPIC_NAME, self._config.offsets_topic_num_partitions
            ),
        )
        return GroupCoordinator(self._config, groups, rng=self._rng)

    def _new_transaction_coordinator(self) -> TransactionCoordinator:
        transactions = TransactionStateManager(
            self._config,
            logs=self._coordinator_replicas(),
            scheduler=self._scheduler,
            wall_clock=self._wall_clock,
            retrieve_partition_count=lambda: self._count_partitions(
                TRANSACTION_STATE_TOPIC_NAME, self._config.transaction_state_log_num_partitions
            ),
        )
        return TransactionCoordinator(
            self._config,
            transactions,
            channels=self._markers,
            scheduler=self._scheduler,
            wall_clock=self._wall_clock,
            generate_producer_id=self._producer_ids.generate_producer_id,
            tracer=self._tracer,
        )

    def _coordinator_replicas(self) -> CoordinatorReplicas:
        return CoordinatorReplicas(
            self.replica_manager.appends,
            partition_of=self.replica_manager.hosted.partition,
            on_storage_error=self.replica_manager.storage_failures.handle,
            verifications=self._verifications,
        )

    def _start_request_handlers(self, apis: KafkaApis) -> None:
        data_plane = KafkaRequestHandlerPool(
            self._socket_server.data_plane_request_channel,
            apis,
            name="data-plane",
            num_threads=self._config.num_io_threads,
            quotas=self.quotas,
        )
        control_plane = KafkaRequestHandlerPool(
            self._socket_server.control_plane_request_channel,
            apis,
            name="control-plane",
            num_threads=CONTROL_PLANE_NUM_IO_THREADS,
            quotas=self.quotas,
        )
        self._started.push_async_callback(data_plane.shutdown)
        self._started.push_async_callback(control_plane.shutdown)
        # Without an own broker epoch, what was meant for this broker's previous life could not be told (KIP-380).
        control_plane.start(opens=self.controller.registered)
        data_plane.start()

    def _alter_partition_manager(self, scheduler: KafkaScheduler) -> AlterPartitionManager:
        if not self._config.is_alter_partition_supported:
            return ZkAlterPartitionManager(
                self._config, zk_client=self._zk_client, scheduler=scheduler
            )
        return DefaultAlterPartitionManager(
            self._config,
            metadata_cache=self.metadata_cache,
            broker_epoch=self._broker_epoch,
            connection=self._connect(f"broker-{self._config.broker_id}-alter-partition"),
        )

    def _load_logs(self, own: BrokerMetadata) -> None:
        self._checkpoint.verify(own)
        self.log_manager.load_logs()
        for log_dir in self.log_manager.live_log_dirs:
            try:
                self._checkpoint.write(log_dir, own)
            except OSError as error:
                failure = KafkaStorageError(f"{log_dir}: {error}", failed_log_dir=log_dir)
                self.replica_manager.storage_failures.note(failure)

    def _on_log_dir_failure(self) -> None:
        loop = asyncio.get_running_loop()
        self._informing.append(loop.create_task(self._tell_log_dir_failure(), name="log-dir-event"))

    async def _tell_log_dir_failure(self) -> None:
        """A session that ends meanwhile makes it needless: the controller then asks about all replicas anyway."""
        try:
            await self._zk_client.log_dir_events.propagate_log_dir_event(self._config.broker_id)
        except ZooKeeperError as error:
            _logger.warning("the controller is not told of a failed log directory: %s", error)

    def _stop_telling(self) -> None:
        for task in self._informing:
            task.cancel()

    def _reconfigure(self, former: KafkaConfig, current: KafkaConfig) -> None:
        """Settings of this broker have changed while it runs."""
        self._tracer.event(Kind.BROKER_RECONFIGURED, **_traced_settings(current))
        self.log_manager.reconfigure_default_log_config(log_config_of(current))
        if current.unclean_leader_election_enable and not former.unclean_leader_election_enable:
            self.controller.enable_default_unclean_leader_election()

    def _apis(self, cluster_id: str) -> KafkaApis:
        config_helper = ConfigHelper(self._dynamic_config)
        zk_admin = ZkAdminManager(
            self._config,
            zk_client=self._zk_client,
            metadata_cache=self.metadata_cache,
            config_helper=config_helper,
            rng=self._rng,
        )
        auto_topic_creation = self._auto_topic_creation(zk_admin)
        return KafkaApis(
            produce=ProduceApis(
                self.replica_manager.appends, self._verifications, self.metadata_cache
            ),
            fetch=FetchApis(
                self.replica_manager.fetches,
                self.metadata_cache,
                FetchManager(
                    self._config.max_incremental_fetch_session_cache_slots,
                    rng=self._rng,
                    topic_name=self.metadata_cache.topic_name,
                ),
            ),
            offsets=OffsetApis(self.replica_manager.offsets),
            records=RecordApis(self.replica_manager.record_deletions, self.metadata_cache),
            metadata=MetadataApis(
                self.metadata_cache,
                cluster_id,
                auto_topic_creation if self._config.auto_create_topics_enable else None,
            ),
            control=ControlApis(self.replica_manager, self._topic_configs.fetch_topic_configs),
            alter_partitions=AlterPartitionApis(self.controller),
            topics=TopicApis(
                self.controller, zk_admin, delete_topic_enable=self._config.delete_topic_enable
            ),
            configs=ConfigApis(
                ConfigAdminManager(
                    self._config.broker_id,
                    zk_client=self._zk_client,
                    metadata_cache=self.metadata_cache,
                    helper=config_helper,
                )
            ),
            reassignments=ReassignmentApis(self.controller),
            producers=ProducerApis(self._producer_ids, self._transaction_coordinator),
            producer_id_blocks=ProducerIdBlockApis(self.controller),
            transactions=TransactionApis(
                self.replica_manager.appends,
                self.replica_manager.hosted,
                self.group_coordinator,
                self._wall_clock,
            ),
            transaction_coordination=TransactionCoordinatorApis(
                self._transaction_coordinator,
                self.metadata_cache,
                offsets_partition_count=self._config.offsets_topic_num_partitions,
            ),
            elections=ElectionApis(
                self.controller, self.metadata_cache, self.replica_manager.delayed_elections
            ),
            coordinators=CoordinatorApis(self.metadata_cache, auto_topic_creation),
            groups=GroupApis(self.group_coordinator),
            group_offsets=GroupOffsetApis(
                self.group_coordinator, self.metadata_cache, self._wall_clock
            ),
            log_dirs=LogDirApis(
                self.log_manager,
                alter=self.replica_manager.alter_replica_log_dirs,
                on_storage_error=self.replica_manager.storage_failures.note,
            ),
        )

    def _auto_topic_creation(self, zk_admin: ZkAdminManager) -> AutoTopicCreationManager:
        manager = AutoTopicCreationManager(
            self._config,
            controller=self.controller,
            zk_admin=zk_admin,
            metadata_cache=self.metadata_cache,
            connection=self._connect(f"broker-{self._config.broker_id}-auto-topic-creation"),
        )
        self._started.push_async_callback(manager.shutdown)
        return manager

    async def _count_partitions(self, topic: str, configured: int) -> int:
        """How many partitions the topic of a coordinator has, or would have if it were created now."""
        present = await self._zk_client.session.retry_across_sessions(
            lambda: self._zk_client.topics.get_replica_assignments([topic])
        )
        return len(present[0].partitions) if present else configured

    async def _find_cluster(self) -> str:
        await self._zk_client.brokers.make_sure_persistent_paths_exist()
        return await self._zk_client.brokers.get_or_create_cluster_id(self._generate_cluster_id)

    def _broker_epoch(self) -> int:
        return self.controller.broker_epoch

    def _generate_cluster_id(self) -> str:
        return topic_id_to_string(random_topic_id(self._rng))


def _traced_settings(config: KafkaConfig) -> dict[str, Any]:
    """Columns of the settings that decide what is a fault of the cluster and what its owner asked for."""
    return {
        "unclean_leader_election_enable": config.unclean_leader_election_enable,
        "min_insync_replicas": config.min_insync_replicas,
    }
