"""Builders of what administrators asked for, and of what the harness saw at the end."""

from __future__ import annotations

import json
from typing import Any, Final

from nemesis.checkers.breaks.events import broker, client, znode
from nemesis.history.events import Event

REASSIGNMENT_PATH: Final = "/admin/reassign_partitions"


def asked(time: int, f: str, outcome: str = "ok", **columns: Any) -> list[Event]:
    """An operation of an administrator and its completion one tick later, of topic t unless another is named."""
    about = {"topic_id": None, "partition": None, **columns}
    return [
        client(time, "admin-0", "invoke", f, time, **about),
        client(time + 1, "admin-0", outcome, f, time, **about),
    ]


def end_state_events(
    label: str,
    partitions: dict[str, list[int]] | None = None,
    *,
    node: int | None = None,
    error: str = "NONE",
) -> list[Event]:
    """One look at the end: ``{"t_0": [1, 2]}`` is partition t-0 with these replicas."""
    events = [
        Event(time=900, process="harness", kind="end-state", source=label, node=node, error=error)
    ]
    for name, replicas in (partitions or {}).items():
        topic, partition = name.split("_")
        events.append(
            Event(
                time=900,
                process="harness",
                kind="end-state",
                source=label,
                node=node,
                topic=topic,
                partition=int(partition),
                replicas=replicas,
            )
        )
    return events


def topic_znode(
    zxid: int, data: str | None = None, *, topic: str = "t", topic_id: str = "id", **columns: Any
) -> Event:
    """The znode of a topic is created, unless another operation is named."""
    about: dict[str, Any] = {"zk_op": "create", "topic": topic, "topic_id": topic_id, **columns}
    return znode(zxid, 9, f"/brokers/topics/{topic}", data=data, **about)


def assigned(zxid: int, *replicas: int) -> Event:
    return topic_znode(zxid, f'{{"partitions": {{"0": {list(replicas)}}}}}', zk_op="setData")


def requested_moves(
    zxid: int, targets: dict[str, list[int]], *, session: int = 9, **columns: Any
) -> Event:
    """The znode of requested moves: ``{"t_0": [1, 2]}`` is t-0 to these replicas. Without any the znode is deleted."""
    partitions = []
    for name, replicas in targets.items():
        topic, partition = name.split("_")
        partitions.append({"topic": topic, "partition": int(partition), "replicas": replicas})
    data = json.dumps({"version": 1, "partitions": partitions}) if targets else None
    about = {"zk_op": "setData" if targets else "delete", "data": data, **columns}
    return znode(zxid, session, REASSIGNMENT_PATH, **about)


def knows_broker(time: int, controller: int, *, broker_id: int, broker_epoch: int) -> Event:
    """A controller sends a request to a broker that it knows by this registration."""
    about: dict[str, Any] = {"api": "UpdateMetadata", "controller_epoch": 1}
    return broker(
        time,
        controller,
        "control-request-sent",
        peer=broker_id,
        broker_epoch=broker_epoch,
        **about,
    )


def wrote(time: int, controller: int, *, zxid: int) -> Event:
    """ZooKeeper has answered a controller's write of the topic's znode."""
    about: dict[str, Any] = {"path": "/brokers/topics/t", "controller_epoch": 1, "error": "NONE"}
    return broker(time, controller, "znode-outcome", zxid=zxid, **about)
