"""How the controller names a partition in its traces."""

from __future__ import annotations

from typing import Any

from reference.controller.controller_context import ControllerContext
from reference.model import TopicPartition


def identity(context: ControllerContext, topic_partition: TopicPartition) -> dict[str, Any]:
    """Columns topic, topic_id and partition."""
    topic_id = context.topic_id_of(topic_partition)
    return {
        "topic": topic_partition.topic,
        "topic_id": None if topic_id is None else str(topic_id),
        "partition": topic_partition.partition,
    }
