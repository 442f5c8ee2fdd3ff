"""CreateTopics, DeleteTopics and CreatePartitions: what only the active controller does about topics.

Any other broker answers NOT_CONTROLLER for each topic, and the client looks for the controller anew. A topic that is
named more than once in a request is refused, the others are dealt with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.protocol.schema import build, build_items, field_names, item_class
from nemesis.reference.server.apis.configs import entry_values
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.config_helper import ConfigEntry
from nemesis.reference.server.zk_admin_manager import (
    PartitionsSpec,
    TopicResult,
    TopicSpec,
    ZkAdminManager,
)

_DISABLED_SINCE_VERSION = 3
"""Before it, DeleteTopics had no error code for deletion being disabled."""


class TopicApis:
    """Needs this broker's controller, active or not, and the one who writes topics to ZooKeeper."""

    def __init__(
        self, controller: KafkaController, zk_admin: ZkAdminManager, *, delete_topic_enable: bool
    ) -> None:
        self._controller = controller
        self._zk_admin = zk_admin
        self._is_delete_topic_enabled = delete_topic_enable

    async def handle_create_topics(self, message: Any) -> Any:
        refused, accepted = self._sort_out(message.topics, _name)
        results = await self._zk_admin.create_topics(
            [_topic_spec(topic) for topic in accepted],
            validate_only=getattr(message, "validate_only", False),
            timeout_ms=milliseconds(message.timeout),
        )
        return _response(message, "topics", [*refused, *results])

    async def handle_create_partitions(self, message: Any) -> Any:
        refused, accepted = self._sort_out(message.topics, _name)
        results = await self._zk_admin.create_partitions(
            [_partitions_spec(topic) for topic in accepted],
            validate_only=message.validate_only,
            timeout_ms=milliseconds(message.timeout),
        )
        return _response(message, "results", [*refused, *results])

    async def handle_delete_topics(self, message: Any) -> Any:
        asked = [
            self._named(message, name, topic_id) for name, topic_id in _topics_to_delete(message)
        ]
        refused, accepted = self._sort_out(
            [result for result in asked if result.error is ErrorCode.none], _name
        )
        names = [result.name for result in accepted if result.name is not None]
        ids = {result.name: result.topic_id for result in accepted}
        timeout_ms = milliseconds(message.timeout)
        deleted = await self._zk_admin.delete_topics(names, timeout_ms=timeout_ms)
        # As asked for: the id is told to those who gave it.
        results = [replace(result, topic_id=ids[result.name]) for result in deleted]
        unresolved = [result for result in asked if result.error is not ErrorCode.none]
        return _response(message, "responses", [*unresolved, *refused, *results])

    def _named(self, message: Any, name: str | None, topic_id: Any) -> TopicResult:
        """The topic to be deleted by its name, or why it is not deleted."""
        if not self._controller.is_active:
            return TopicResult(name, ErrorCode.not_controller, topic_id=topic_id)
        if not self._is_delete_topic_enabled:
            is_known = message.__version__ >= _DISABLED_SINCE_VERSION
            error = ErrorCode.topic_deletion_disabled if is_known else ErrorCode.invalid_request
            return TopicResult(name, error, "delete.topic.enable is false.", topic_id)
        if (name is None) is (topic_id is None):
            text = "Either the name or the id of a topic must be given."
            return TopicResult(name, ErrorCode.invalid_request, text, topic_id)
        if name is None:
            name = self._controller.context.topic_names.get(topic_id)
        if name is None:
            text = "This server does not host this topic ID."
            return TopicResult(None, ErrorCode.unknown_topic_id, text, topic_id)
        return TopicResult(name, topic_id=topic_id)

    def _sort_out(
        self, topics: Sequence[Any], name_of: Callable[[Any], str]
    ) -> tuple[list[TopicResult], list[Any]]:
        """Results for the topics that cannot be dealt with, and the others."""
        named = Counter(map(name_of, topics))
        if not self._controller.is_active:
            return [TopicResult(name, ErrorCode.not_controller) for name in named], []
        text = "The topic is named more than once."
        twice = [
            TopicResult(name, ErrorCode.invalid_request, text)
            for name, count in named.items()
            if count > 1
        ]
        return twice, [topic for topic in topics if named[name_of(topic)] == 1]


def _name(topic: Any) -> str:
    return str(topic.name)


def _topics_to_delete(message: Any) -> Iterable[tuple[str | None, Any]]:
    """(name or None, topic id or None) of what DeleteTopics names, in any version."""
    for name in getattr(message, "topic_names", ()):
        yield name, None
    for topic in getattr(message, "topics", ()):
        yield topic.name, topic.topic_id


def _topic_spec(topic: Any) -> TopicSpec:
    return TopicSpec(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={item.partition_index: item.broker_ids for item in topic.assignments},
        configs={item.name: item.value for item in topic.configs},
    )


def _partitions_spec(topic: Any) -> PartitionsSpec:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(item.broker_ids) for item in topic.assignments)
    return PartitionsSpec(topic.name, topic.count, assignments)


def _response(message: Any, field: str, results: Iterable[TopicResult]) -> Any:
    response = response_of(message)
    result_class = item_class(response, field)
    items = (
        {
            "name": result.name,
            "topic_id": result.topic_id,
            "error_code": result.error,
            "error_message": result.message,
            "num_partitions": result.num_partitions,
            "replication_factor": result.replication_factor,
            "configs": _config_items(result_class, result.configs),
        }
        for result in results
    )
    return build(
        response, throttle_time=NO_THROTTLE, **{field: build_items(response, field, items)}
    )


def _config_items(result_class: type[Any], entries: Iterable[ConfigEntry]) -> tuple[Any, ...]:
    """What CreateTopics tells of the new topic's settings, in the versions that do."""
    if "configs" not in field_names(result_class):
        return ()
    return build_items(result_class, "configs", map(entry_values, entries))
