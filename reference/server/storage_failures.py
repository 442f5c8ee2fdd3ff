"""Takes replicas offline whose log failed, and log directories whose medium failed.

A log whose medium fails goes offline at once. Every other log of its directory follows as soon as the request that met
the failure is done, as with Kafka's LogDirFailureHandler (KIP-112). A replica that was moving to that directory stays
where it is. The first failure of each directory is traced before anything follows from it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.server.coordinator_roles import RoleListener
from nemesis.reference.server.hosted_partitions import HostedPartitions
from nemesis.reference.server.replica_fetching import ReplicaFetching
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)


class StorageFailures:
    """Handles the storage errors of one broker. ``on_log_dir_failure`` is called while other directories are left."""

    def __init__(
        self,
        *,
        tracer: Tracer,
        hosted: HostedPartitions,
        log_manager: LogManager,
        fetching: ReplicaFetching,
        on_log_dir_failure: Callable[[], None],
    ) -> None:
        self._tracer = tracer
        self._hosted = hosted
        self._log_manager = log_manager
        self._fetching = fetching
        self._on_log_dir_failure = on_log_dir_failure
        self.role_listeners: list[RoleListener] = []
        """These learn of each replica that goes offline."""
        self.all_log_dirs_failed = asyncio.Event()
        """Set when no log directory is left: the broker has to halt."""
        self._failed: set[str] = set()

    def handle(self, topic_partition: TopicPartition, error: KafkaStorageError) -> None:
        """Stop serving a replica whose log failed, and handle the failure of its log directory."""
        _logger.error("%s: %s", topic_partition, error)
        self.mark_offline(topic_partition)
        self.note(error)

    def handle_future_log(self, topic_partition: TopicPartition, error: KafkaStorageError) -> None:
        """Handle the failure of a move: the replica is served from its present log, if it still has one."""
        partition = self._hosted.partitions.get(topic_partition)
        if partition is not None and partition.log is None:
            self.mark_offline(topic_partition)
        self.note(error)

    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """Stop serving a replica whose log failed, until the broker restarts."""
        self._hosted.offline.add(topic_partition)
        self._fetching.stop(topic_partition)
        partition = self._hosted.partitions.pop(topic_partition, None)
        if partition is not None:
            partition.delete()
            for listener in self.role_listeners:
                listener.on_replica_gone(topic_partition, partition.leader_epoch)

    def note(self, error: KafkaStorageError) -> None:
        """Take the log directory offline if its medium failed, once the running callback is done."""
        if error.failed_log_dir is not None:
            self._trace(error.failed_log_dir, error)
            asyncio.get_running_loop().call_soon(self._handle_log_dir_failure, error.failed_log_dir)

    def _trace(self, log_dir: str, error: KafkaStorageError) -> None:
        if log_dir not in self._failed:
            self._failed.add(log_dir)
            self._tracer.event(Kind.LOG_DIR_FAILED, log_dir=log_dir, error=str(error))

    def _handle_log_dir_failure(self, log_dir: str) -> None:
        for topic_partition in self._log_manager.handle_log_dir_failure(log_dir):
            self.mark_offline(topic_partition)
        for topic_partition, partition in self._hosted.partitions.items():
            if partition.future_log is not None and partition.future_log.log_dir == log_dir:
                self._fetching.log_dirs.remove_fetchers([topic_partition])
                partition.forget_future_replica()
        if not self._log_manager.live_log_dirs:
            self.all_log_dirs_failed.set()
        else:
            self._on_log_dir_failure()
