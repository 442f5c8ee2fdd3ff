"""What the controller's traces say of a partition: which one it is, and the state that it has been given."""

from __future__ import annotations

from typing import Any

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.model import TopicPartition
from nemesis.reference.zk.partition_states import CommittedState


def identity(context: ControllerContext, topic_partition: TopicPartition) -> dict[str, Any]:
    """Columns topic, topic_id and partition."""
    topic_id = context.topic_id_of(topic_partition)
    return {
        "topic": topic_partition.topic,
        "topic_id": None if topic_id is None else str(topic_id),
        "partition": topic_partition.partition,
    }


def committed_state(
    context: ControllerContext, topic_partition: TopicPartition, committed: CommittedState
) -> dict[str, Any]:
    """All columns of a leader-elected event except ``strategy``."""
    leader_and_isr = committed.state.leader_and_isr
    return {
        **identity(context, topic_partition),
        "leader": leader_and_isr.leader,
        "leader_epoch": leader_and_isr.leader_epoch,
        "isr": list(leader_and_isr.isr),
        "partition_epoch": leader_and_isr.partition_epoch,
        "controller_epoch": committed.state.controller_epoch,
        "zxid": committed.zxid,
        "replicas": list(context.assignment(topic_partition).replicas),
        "live": context.live_broker_ids,
    }
