"""ApiVersions, Metadata and DescribeCluster: what a client asks before it does anything.

Metadata answers from one snapshot of the MetadataCache. "All topics" is an empty list in version 0 and
null later, where an empty list means none. Version 12 may ask by topic id alone. A topic that is asked for by a name
that nobody has is created where the broker's configuration and the request allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    INTERNAL_TOPICS,
    PLAINTEXT,
    BrokerEndPoint,
    UpdateMetadataPartitionState,
)
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.server.auto_topic_creation_manager import AutoTopicCreationManager
from nemesis.reference.server.kafka_request_handler import Later
from nemesis.reference.server.metadata_cache import MetadataCache, MetadataSnapshot

_NONE = -1
_BROKERS, _CONTROLLERS = 1, 2
_ENDPOINT_ERRORS = {
    _BROKERS: ErrorCode.none,
    _CONTROLLERS: ErrorCode.mismatched_endpoint_type,
}
_NAME_MAY_BE_NULL: Final = 12
"""The first version whose answer may leave out a topic's name."""


class MetadataApis:
    """Needs the cache and the cluster's id; ``auto_topic_creation`` is None where topics are not created so."""

    def __init__(
        self,
        metadata_cache: MetadataCache,
        cluster_id: str,
        auto_topic_creation: AutoTopicCreationManager | None = None,
    ) -> None:
        self._metadata_cache = metadata_cache
        self._cluster_id = cluster_id
        self._auto_topic_creation = auto_topic_creation

    def handle_api_versions(self, message: Any) -> Any:
        response = response_of(message)
        ranges = (
            {"api_key": int(key), "min_version": v.lowest, "max_version": v.highest}
            for key, v in OFFERED.items()
        )
        return build(
            response,
            error_code=ErrorCode.none,
            api_keys=build_items(response, "api_keys", ranges),
            throttle_time=NO_THROTTLE,
        )

    def handle_metadata(self, message: Any, listener_name: str = PLAINTEXT) -> Any | Later:
        missing = self._creatable(message)
        if self._auto_topic_creation is None or not missing:
            return self._metadata(message, listener_name, {})
        return self._metadata_with_new_topics(
            message, listener_name, self._auto_topic_creation, missing
        )

    async def _metadata_with_new_topics(
        self,
        message: Any,
        listener_name: str,
        auto_topic_creation: AutoTopicCreationManager,
        missing: list[str],
    ) -> Any:
        return self._metadata(
            message, listener_name, await auto_topic_creation.create_topics(missing)
        )

    def _creatable(self, message: Any) -> list[str]:
        """The names that nobody has, if the request lets their topics be created: always below version 4."""
        if not getattr(message, "allow_auto_topic_creation", True):
            return []
        known = self._metadata_cache.snapshot.topics
        named = [topic.name for topic in message.topics or () if topic.name is not None]
        return [name for name in dict.fromkeys(named) if name not in known]

    def _metadata(self, message: Any, listener_name: str, codes: Mapping[str, ErrorCode]) -> Any:
        """``codes``: what to say of topics that are not known. Brokers are told by the listener that was asked."""
        response = response_of(message)
        snapshot = self._metadata_cache.snapshot
        controller_id = self._metadata_cache.controller_id
        return build(
            response,
            throttle_time=NO_THROTTLE,
            brokers=build_items(
                response,
                "brokers",
                (
                    {"node_id": b.id, "host": b.host, "port": b.port, "rack": b.rack}
                    for b in self._nodes(listener_name)
                ),
            ),
            cluster_id=self._cluster_id,
            controller_id=_NONE if controller_id is None else controller_id,
            topics=tuple(_asked_topics(message, response, snapshot, codes)),
        )

    def handle_describe_cluster(self, message: Any, listener_name: str = PLAINTEXT) -> Any:
        """The brokers; version 1 may ask for Raft controllers, of which a broker knows none (KIP-919)."""
        endpoint_type = getattr(message, "endpoint_type", _BROKERS)
        error = _ENDPOINT_ERRORS.get(endpoint_type, ErrorCode.unsupported_endpoint_type)
        is_known = error is ErrorCode.none
        controller_id = self._metadata_cache.controller_id if is_known else None
        brokers = self._nodes(listener_name) if is_known else []
        response = response_of(message)
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=error,
            endpoint_type=endpoint_type,
            cluster_id=self._cluster_id if is_known else "",
            controller_id=_NONE if controller_id is None else controller_id,
            brokers=build_items(
                response,
                "brokers",
                (
                    {"broker_id": b.id, "host": b.host, "port": b.port, "rack": b.rack}
                    for b in brokers
                ),
            ),
        )

    def _nodes(self, listener_name: str) -> list[BrokerEndPoint]:
        nodes = [broker.node(listener_name) for broker in self._metadata_cache.alive_brokers()]
        return [node for node in nodes if node is not None]


def _asked_topics(
    message: Any,
    response: type[Any],
    snapshot: MetadataSnapshot,
    codes: Mapping[str, ErrorCode],
) -> Iterable[Any]:
    topic_class = item_class(response, "topics")
    is_all = message.topics is None or (message.__version__ == 0 and not message.topics)
    if is_all:
        for name in sorted(snapshot.topics):
            yield _topic(topic_class, snapshot, name)
        return
    for topic in message.topics:
        topic_id = getattr(topic, "topic_id", None)
        if topic_id is None and topic.name is not None:
            unknown = codes.get(topic.name, ErrorCode.unknown_topic_or_partition)
            yield _topic(topic_class, snapshot, topic.name, unknown)
        elif topic_id is not None and topic_id in snapshot.topic_names:
            yield _topic(topic_class, snapshot, snapshot.topic_names[topic_id])
        else:
            # The name is not known (or, in versions 10 and 11, may not be left out).
            yield build(
                topic_class,
                error_code=ErrorCode.unknown_topic_id if topic_id else ErrorCode.invalid_request,
                name=""
                if topic.name is None and message.__version__ < _NAME_MAY_BE_NULL
                else topic.name,
                topic_id=topic_id,
                partitions=(),
            )


def _topic(
    topic_class: type[Any],
    snapshot: MetadataSnapshot,
    name: str,
    unknown: ErrorCode = ErrorCode.unknown_topic_or_partition,
) -> Any:
    partitions = snapshot.topics.get(name)
    return build(
        topic_class,
        error_code=unknown if partitions is None else ErrorCode.none,
        name=name,
        topic_id=snapshot.topic_ids.get(name),
        is_internal=name in INTERNAL_TOPICS,
        partitions=build_items(
            topic_class,
            "partitions",
            (_partition(snapshot, state) for _, state in sorted((partitions or {}).items())),
        ),
    )


def _partition(snapshot: MetadataSnapshot, state: UpdateMetadataPartitionState) -> dict[str, Any]:
    has_leader = state.leader in snapshot.brokers
    return {
        "error_code": ErrorCode.none if has_leader else ErrorCode.leader_not_available,
        "partition_index": state.topic_partition.partition,
        "leader_id": state.leader if has_leader else _NONE,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": tuple(
            replica
            for replica in state.replicas
            if replica in state.offline_replicas or replica not in snapshot.brokers
        ),
    }
