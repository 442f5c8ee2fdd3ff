"""FindCoordinator: which broker coordinates a group or a transactional id.

The topic of the coordinators is created when the first client asks.

Source: kafka.server.KafkaApis.handleFindCoordinatorRequest of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.model import (
    GROUP_METADATA_TOPIC_NAME,
    PLAINTEXT,
    TRANSACTION_STATE_TOPIC_NAME,
    TopicPartition,
)
from nemesis.reference.protocol.schema import build, build_items
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.server.auto_topic_creation_manager import AutoTopicCreationManager
from nemesis.reference.server.kafka_request_handler import Later
from nemesis.reference.server.metadata_cache import MetadataCache

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
"""Key types."""
_TOPICS: Final = {_GROUP: GROUP_METADATA_TOPIC_NAME, _TRANSACTION: TRANSACTION_STATE_TOPIC_NAME}
_FIRST_SHARE_VERSION: Final = 6


@dataclass(frozen=True, slots=True)
class _Answer:
    """For one key."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


_NOT_AVAILABLE = _Answer(error_code=ErrorCode.coordinator_not_available)


class CoordinatorApis:
    """Needs the cache and the one who creates topics."""

    def __init__(
        self, metadata_cache: MetadataCache, auto_topic_creation: AutoTopicCreationManager
    ) -> None:
        self._metadata_cache = metadata_cache
        self._auto_topic_creation = auto_topic_creation

    def handle_find_coordinator(self, message: Any, listener_name: str = PLAINTEXT) -> Any | Later:
        key_type = getattr(message, "key_type", _GROUP)
        topic = _TOPICS.get(key_type)
        if topic is not None and not self._metadata_cache.topic_partitions(topic):
            return self._create_topic(message, topic)
        return _response(
            message,
            [self._answer(message, key_type, key, listener_name) for key in _keys(message)],
        )

    async def _create_topic(self, message: Any, topic: str) -> Any:
        await self._auto_topic_creation.create_topics([topic])
        return _response(message, [_NOT_AVAILABLE] * len(_keys(message)))

    def _answer(self, message: Any, key_type: int, key: str, listener_name: str) -> _Answer:
        topic = _TOPICS.get(key_type)
        if topic is not None:
            return self._coordinator(topic, key, listener_name)
        if key_type == _SHARE and message.__version__ >= _FIRST_SHARE_VERSION:
            return _NOT_AVAILABLE
        return _Answer(error_code=ErrorCode.invalid_request)

    def _coordinator(self, topic: str, key: str, listener_name: str) -> _Answer:
        number = partition_for(key, len(self._metadata_cache.topic_partitions(topic)))
        state = self._metadata_cache.partition_info(TopicPartition(topic, number))
        node = (
            None
            if state is None
            else self._metadata_cache.alive_broker_node(state.leader, listener_name)
        )
        return _NOT_AVAILABLE if node is None else _Answer(node.id, node.host, node.port)


def _keys(message: Any) -> tuple[str, ...]:
    """The one key of versions 0 to 3, or all keys."""
    keys: tuple[str, ...] | None = getattr(message, "coordinator_keys", None)
    return (message.key,) if keys is None else keys


def _response(message: Any, answers: Sequence[_Answer]) -> Any:
    response = response_of(message)
    if "coordinators" not in response.__dataclass_fields__:
        return build(response, throttle_time=NO_THROTTLE, **asdict(answers[0]))
    items = (
        asdict(answer) | {"key": key} for key, answer in zip(_keys(message), answers, strict=True)
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        coordinators=build_items(response, "coordinators", items),
    )
