"""The few events: registrations, controllers' terms, control requests, elections, as brokers and ZooKeeper tell them.

They are made as ``Event``s: a dozen per partition and term. ZooKeeper's order: brokers register, topics are created;
then each term has a stretch of zxids of its own, its grant first, then the states of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.histories.brokers import INCARNATION
from benchmarks.histories.shape import START_NS, Partition, Shape
from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.history.znodes import PROCESS

TICK_NS = 1_000


class Timeline:
    """Hands out the times of the events of one process or partition, from the start of a term on."""

    def __init__(self, shape: Shape, term: int) -> None:
        self._now = START_NS + term * shape.term_ns

    def event(self, node: int, kind: Kind, **columns: Any) -> Event:
        """An event of a broker, a tick after the one before."""
        self._now += TICK_NS
        return Event(
            time=self._now,
            process=f"broker-{node}",
            kind=kind.value,
            seq=self._now,
            incarnation=INCARNATION,
            node=node,
            **columns,
        )


def session(broker: int) -> int:
    return 100 + broker


def cluster(shape: Shape) -> Iterator[Event]:
    """Yield what concerns no topic."""
    for broker in brokers(shape):
        columns: dict[str, Any] = {"node": broker, "broker_epoch": broker, "ephemeral": True}
        yield _znode(broker, session(broker), f"/brokers/ids/{broker}", "{}", **columns)
    for term in range(shape.terms):
        yield from _grant(shape, term)
    start = Timeline(shape, 0)
    for broker in brokers(shape):
        yield start.event(broker, Kind.BROKER_STARTED)
        registered = {"broker_epoch": broker, "session": session(broker), "zxid": broker}
        yield start.event(broker, Kind.BROKER_REGISTERED, **registered)
    for term in range(shape.terms):
        yield from _term(shape, term, start if term == 0 else Timeline(shape, term))


def brokers(shape: Shape) -> range:
    return range(1, shape.brokers + 1)


def topic(shape: Shape, first: Partition) -> Event:
    """Return the creation of a topic, given its first partition."""
    assigned = {
        str(partition.index): list(partition.replicas)
        for partition in shape.all_partitions()[first.number : first.number + shape.partitions]
    }
    data = {"version": 3, "topic_id": first.topic_id, "partitions": assigned}
    zxid = shape.brokers + 1 + first.number // shape.partitions
    path = f"/brokers/topics/{first.topic}"
    text = msgspec.json.encode(data).decode()
    names: dict[str, Any] = {"topic": first.topic, "topic_id": first.topic_id}
    return _znode(zxid, session(shape.controller(0)), path, text, **names)


def states(shape: Shape, partition: Partition) -> Iterator[Event]:
    """Yield the states of a partition as ZooKeeper has them."""
    for term in range(shape.terms):
        state = _state(partition, term)
        yield _znode(
            _state_zxid(shape, partition, term),
            session(shape.controller(term)),
            f"/brokers/topics/{partition.topic}/partitions/{partition.index}/state",
            msgspec.json.encode(state).decode(),
            version=term,
            **_names(partition),
            **{name: state[name] for name in ("leader", "leader_epoch", "isr", "controller_epoch")},
        )


def elections(shape: Shape, partition: Partition, term: int) -> Iterator[Event]:
    """Yield what the controller and the replicas of a partition trace at the start of a term."""
    timeline, controller = Timeline(shape, term), shape.controller(term)
    names, state = _names(partition), _state(partition, term)
    in_term = {**names, "controller_epoch": term + 1}
    steps = [("Online", "Online")] if term else [("NonExistent", "New"), ("New", "Online")]
    if term == 0:
        for before, after in steps:
            states = {"from_state": before, "to_state": after}
            for replica in partition.replicas:
                yield timeline.event(
                    controller, Kind.TRANSITION, **in_term, replica=replica, **states
                )
    replicas = list(partition.replicas)
    yield timeline.event(
        controller,
        Kind.LEADER_ELECTED,
        **names,
        **state,
        replicas=replicas,
        live=replicas,
        zxid=_state_zxid(shape, partition, term),
        partition_epoch=term,
        strategy="preferred" if term else "new",
    )
    for before, after in steps:
        states = {"from_state": before, "to_state": after}
        yield timeline.event(controller, Kind.TRANSITION, **in_term, **states)
    end = partition.first_record(term)
    ends = {"log_end_offset": end, "high_watermark": end}
    epochs = {"leader_epoch": term, "partition_epoch": term, "controller_epoch": term + 1}
    for replica in partition.replicas:
        if term == 0:
            yield timeline.event(replica, Kind.LOG_LOADED, **names, **ends, log_start_offset=0)
        if replica == partition.leader(term):
            more: dict[str, Any] = {"isr": replicas, "replicas": replicas, "log_start_offset": 0}
            yield timeline.event(replica, Kind.BECOME_LEADER, **names, **epochs, **ends, **more)
        else:
            more = {"leader": partition.leader(term)}
            yield timeline.event(replica, Kind.BECOME_FOLLOWER, **names, **epochs, **ends, **more)


def _grant(shape: Shape, term: int) -> Iterator[Event]:
    """A controller's election in ZooKeeper."""
    owner, zxid = shape.controller(term), _first_zxid(shape, term)
    if term:
        previous = session(shape.controller(term - 1))
        yield _znode(zxid, previous, "/controller", None, op="delete")
    epoch: dict[str, Any] = {"version": term, "controller_epoch": term + 1}
    yield _znode(zxid + 1, session(owner), "/controller_epoch", str(term + 1), **epoch)
    data = f'{{"version":1,"brokerid":{owner}}}'
    columns: dict[str, Any] = {"controller_id": owner, "ephemeral": True}
    yield _znode(zxid + 1, session(owner), "/controller", data, seq=1, **columns)


def _term(shape: Shape, term: int, timeline: Timeline) -> Iterator[Event]:
    """What brokers trace of a controller's term."""
    controller, epoch = shape.controller(term), term + 1
    if term:
        previous = shape.controller(term - 1)
        yield timeline.event(previous, Kind.CONTROLLER_RESIGNED, controller_epoch=epoch - 1)
    elected = {"zk_version": term, "session": session(controller)}
    zxid = _first_zxid(shape, term) + 1
    yield timeline.event(
        controller, Kind.CONTROLLER_ELECTED, controller_epoch=epoch, zxid=zxid, **elected
    )
    yield timeline.event(controller, Kind.CONTROLLER_FAILOVER, controller_epoch=epoch)
    for api in ("UpdateMetadata", "LeaderAndIsr"):
        for broker in brokers(shape):
            request = {"api": api, "controller_epoch": epoch, "broker_epoch": broker}
            yield timeline.event(controller, Kind.CONTROL_REQUEST_SENT, peer=broker, **request)
            yield timeline.event(
                broker, Kind.CONTROL_REQUEST_HANDLED, peer=controller, error=NO_ERROR, **request
            )


def _names(partition: Partition) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "topic_id": partition.topic_id,
        "partition": partition.index,
    }


def _state(partition: Partition, term: int) -> dict[str, Any]:
    return {
        "leader": partition.leader(term),
        "leader_epoch": term,
        "isr": sorted(partition.replicas),
        "controller_epoch": term + 1,
    }


def _first_zxid(shape: Shape, term: int) -> int:
    partitions = shape.topics * shape.partitions
    return shape.brokers + shape.topics + 1 + term * (partitions + 2)


def _state_zxid(shape: Shape, partition: Partition, term: int) -> int:
    return _first_zxid(shape, term) + 2 + partition.number


def _znode(
    zxid: int,
    session_id: int,
    path: str,
    data: str | None,
    *,
    op: str | None = None,
    version: int = 0,
    seq: int = 0,
    **columns: Any,
) -> Event:
    return Event(
        time=-1,
        process=PROCESS,
        kind=Kind.ZNODE.value,
        seq=seq,
        zxid=zxid,
        session=session_id,
        zk_op=op or ("setData" if version else "create"),
        path=path,
        data=data,
        zk_version=version,
        wall_ms=zxid,
        **columns,
    )
