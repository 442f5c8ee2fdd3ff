"""The smallest histories that break the properties of what administrators asked for, and how a run ends."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.administration import (
    REASSIGNMENT_PATH,
    asked,
    assigned,
    end_state_events,
    knows_broker,
    requested_moves,
    topic_znode,
    wrote,
)
from nemesis.checkers.breaks.events import TP, broker, grant, harness, history, state, znode
from nemesis.history.events import Event
from nemesis.history.vocabulary.faults import TRIGGER_MISSED


def _fault(time: int, kind: str, number: int = 0, **columns: Any) -> Event:
    about: dict[str, Any] = {"fault": "pause", "fault_id": number, "targets": ["broker-2"]}
    return Event(time=time, process="nemesis", kind=kind, seq=time, **(about | columns))


def _about(time: int, f: str, *replicas: int) -> list[Event]:
    return asked(time, f, partition=0, replicas=list(replicas) or None)


_CREATE = asked(1, "create-topic", partition_count=2)
_DELETE = asked(5, "delete-topic")
_FIRST = _about(1, "describe", 1, 2)
_MOVED = _about(3, "reassign", 2, 3)

DELETION: Final = (
    history(
        _CREATE,
        asked(3, "create-topic", partition_count=1),
        end_state_events("zookeeper", {"t_0": [1], "t_1": [1]}),
    ),
    history(_CREATE, end_state_events("zookeeper", {"t_0": [1, 2]})),
    history(
        _CREATE,
        topic_znode(1),
        _DELETE,
        znode(6, 9, "/admin/delete_topics/t", zk_op="create"),
        topic_znode(7, zk_op="delete"),
        znode(8, 9, "/admin/delete_topics/t", zk_op="delete"),
        end_state_events("zookeeper"),
        end_state_events("logs", {"t_0": [1, 2]}, node=2),
    ),
    history(
        _CREATE,
        topic_znode(1),
        znode(2, 9, "/brokers/topics/t/partitions", zk_op="create"),
        _DELETE,
        znode(6, 9, "/admin/delete_topics/t", zk_op="create"),
        topic_znode(7, zk_op="delete"),
        end_state_events("zookeeper"),
    ),
    history(topic_znode(1), topic_znode(2, topic="u")),
    history(topic_znode(1), topic_znode(7, zk_op="delete")),
    history(
        _CREATE,
        end_state_events("zookeeper", {"t_0": [1], "t_1": [1]}),
        end_state_events("logs", node=3, error="EIO"),
    ),
)
REASSIGNMENT: Final = (
    history(_FIRST, _MOVED, end_state_events("zookeeper", {"t_0": [1, 2]})),
    history(
        _FIRST,
        end_state_events("zookeeper", {"t_0": [1, 2]}),
        end_state_events("logs", {"t_0": []}, node=1),
        end_state_events("logs", node=2),
    ),
    history(
        assigned(1, 1, 2),
        grant(2, 9, 3, 1),
        znode(3, 8, "/brokers/ids/1", zk_op="create", node=1),
        assigned(5, 2, 3),
        knows_broker(4, 3, broker_id=1, broker_epoch=3),
        wrote(6, 3, zxid=5),
        end_state_events("zookeeper", {"t_0": [2, 3]}),
        end_state_events("logs", {"t_0": []}, node=1),
    ),
    history(
        assigned(1, 1, 2),
        assigned(5, 2, 3),
        end_state_events("zookeeper", {"t_0": [2, 3]}),
        end_state_events("logs", {"t_0": []}, node=1),
    ),
    history(
        grant(1, 9, 3, 1),
        assigned(2, 1, 2),
        state(3, 9, 1, 0, [1, 2]),
        asked(5, "reassign", "info", partition=0, replicas=[2, 3], path=REASSIGNMENT_PATH),
        requested_moves(4, {"t_0": [2, 3]}, session=7, zk_op="create"),
        requested_moves(5, {}),
        end_state_events("zookeeper", {"t_0": [1, 2]}),
    ),
)
CONVERGENCE: Final = (
    history(
        harness(5, "convergence", check="leaders", error="no leader", duration_ms=30_000, **TP)
    ),
    history(
        harness(4, "harness-lag", duration_ms=1_500),
        harness(5, "convergence", check="leaders", error="no leader", duration_ms=30_000),
    ),
    history(harness(5, "convergence", check="leaders", error="HARNESS: ZooKeeper did not answer")),
    history(
        harness(
            5,
            "convergence",
            check="initial-topics",
            error="the topics t did not all get leaders within 50 s",
            duration_ms=50_000,
        )
    ),
)
NO_UNFORESEEN_EXCEPTION: Final = (
    history(
        broker(1, 2, "exceptions-watched"),
        broker(5, 2, "unforeseen-exception", error="KeyError: 7 in log.log: Log.append"),
    ),
)
FAULT_EFFECT: Final = (
    history(_fault(1, "fault-applied", effect="none")),
    history(_fault(1, "fault-skipped", error="no such follower")),
    history(_fault(1, "fault-skipped", error=TRIGGER_MISSED)),
)
