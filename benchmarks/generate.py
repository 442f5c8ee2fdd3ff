"""A correct history of about N events: what three brokers and their clients would trace in a quiet cluster.

Everything that the replication properties read is there: elections in ZooKeeper's order, appends on all
replicas, the high watermark behind them, acknowledged sends, polls that return what was sent, final reads.
Seeded by nothing, because nothing in it is random: the same arguments give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.history.run_directory import RunDirectory, RunInfo

BROKERS = (1, 2, 3)
TICK_NS = 1_000
POLL_EVERY = 10
"""Records between two polls of a partition's consumer."""


class History:
    """Hands out event times and the ``seq`` of each process."""

    def __init__(self) -> None:
        self.time = 1_000_000_000
        self._seq: dict[str, int] = {}
        self._op = 0

    def event(self, process: str, kind: Kind, **columns: object) -> Event:
        self.time += TICK_NS
        seq = self._seq.get(process, 0)
        self._seq[process] = seq + 1
        node = int(process.removeprefix("broker-")) if process.startswith("broker-") else None
        fields = {"node": node, "incarnation": node, **columns}
        return Event(time=self.time, process=process, kind=kind.value, seq=seq, **fields)  # type: ignore[arg-type]

    def operation(self) -> int:
        self._op += 1
        return self._op


def events(count: int, *, topics: int = 2, partitions: int = 3) -> Iterator[Event]:
    """Yield about ``count`` events, in the order of their times (those of ZooKeeper first)."""
    history = History()
    tps = [(f"topic-{t}", f"id-{t}", p) for t in range(topics) for p in range(partitions)]
    yield from _zookeeper(tps, topics)
    yield history.event("harness", Kind.PHASE, phase="warm-up")
    yield from _elections(history, tps)
    per_record = 7 + 2 / POLL_EVERY
    records = max(1, round((count - 11 * len(tps)) / per_record / len(tps)))
    value = 0
    for offset in range(records):
        for number, tp in enumerate(tps):
            value += 1
            yield from _record(history, number, tp, offset, value)
            if (offset + 1) % POLL_EVERY == 0:
                first = offset + 1 - POLL_EVERY
                yield from _poll(history, f"consumer-{number}", number, tp, first, offset, len(tps))
    yield history.event("harness", Kind.PHASE, phase="final-reads")
    for number, tp in enumerate(tps):
        yield from _poll(history, f"final-{number}", number, tp, 0, records - 1, len(tps))
        yield history.event(
            f"final-{number}",
            Kind.FINAL_READ,
            **_tp(tp),
            offset=records,
            high_watermark=records,
            error=NO_ERROR,
        )
    yield history.event("harness", Kind.PHASE, phase="end")


def write(store: Path, count: int, *, topics: int = 2, partitions: int = 3) -> RunDirectory:
    """Write a run directory with such a history as raw files; return it."""
    run = RunDirectory.create(store, RunInfo(scenario="generated", seed=0, zookeepers=1))
    encoder = msgspec.json.Encoder()
    files: dict[str, list[bytes]] = {}
    for event in events(count, topics=topics, partitions=partitions):
        name = event.process if event.process.startswith("broker-") else event.process.split("-")[0]
        files.setdefault(name, []).append(encoder.encode(event))
    for name, lines in files.items():
        run.raw_file(name).write_bytes(b"\n".join(lines) + b"\n")
    return run


def _tp(tp: tuple[str, str, int]) -> dict[str, object]:
    return {"topic": tp[0], "topic_id": tp[1], "partition": tp[2]}


def _zookeeper(tps: list[tuple[str, str, int]], topics: int) -> Iterator[Event]:
    zxid = 0

    def znode(path: str, data: str, **columns: object) -> Event:
        nonlocal zxid
        zxid += 1
        return Event(
            time=-1,
            process="zookeeper",
            kind=Kind.ZNODE.value,
            zxid=zxid,
            session=columns.pop("session", 101),  # type: ignore[arg-type]
            zk_op="create",
            path=path,
            data=data,
            zk_version=0,
            wall_ms=zxid,
            **columns,  # type: ignore[arg-type]
        )

    for broker in BROKERS:
        yield znode(
            f"/brokers/ids/{broker}",
            "{}",
            node=broker,
            broker_epoch=zxid + 1,
            ephemeral=True,
            session=100 + broker,
        )
    yield znode("/controller_epoch", "1", controller_epoch=1)
    yield znode("/controller", '{"version":1,"brokerid":1}', controller_id=1, ephemeral=True)
    for topic in range(topics):
        data = f'{{"version":3,"topic_id":"id-{topic}"}}'
        yield znode(
            f"/brokers/topics/topic-{topic}", data, topic=f"topic-{topic}", topic_id=f"id-{topic}"
        )
    for number, tp in enumerate(tps):
        leader = BROKERS[number % len(BROKERS)]
        yield znode(
            f"/brokers/topics/{tp[0]}/partitions/{tp[2]}/state",
            "{}",
            **_tp(tp),
            leader=leader,
            leader_epoch=0,
            controller_epoch=1,
            isr=list(BROKERS),
        )


def _elections(history: History, tps: list[tuple[str, str, int]]) -> Iterator[Event]:
    for broker in BROKERS:
        yield history.event(f"broker-{broker}", Kind.BROKER_STARTED)
        yield history.event(
            f"broker-{broker}",
            Kind.BROKER_REGISTERED,
            broker_epoch=broker,
            session=100 + broker,
            zxid=broker,
        )
    yield history.event(
        "broker-1", Kind.CONTROLLER_ELECTED, controller_epoch=1, zk_version=0, session=101, zxid=4
    )
    for number, tp in enumerate(tps):
        leader = BROKERS[number % len(BROKERS)]
        state = {"leader_epoch": 0, "controller_epoch": 1, "partition_epoch": 0}
        isr = list(BROKERS)
        zxid = 5 + len({name for name, _, _ in tps}) + number + 1
        yield history.event(
            "broker-1",
            Kind.LEADER_ELECTED,
            **_tp(tp),
            **state,
            leader=leader,
            isr=isr,
            replicas=isr,
            live=isr,
            zxid=zxid,
            strategy="new",
        )
        ends = {"log_end_offset": 0, "high_watermark": 0}
        for broker in BROKERS:
            process = f"broker-{broker}"
            yield history.event(process, Kind.LOG_LOADED, **_tp(tp), **ends, log_start_offset=0)
            if broker == leader:
                yield history.event(
                    process,
                    Kind.BECOME_LEADER,
                    **_tp(tp),
                    **state,
                    **ends,
                    isr=isr,
                    replicas=isr,
                    log_start_offset=0,
                )
            else:
                yield history.event(
                    process, Kind.BECOME_FOLLOWER, **_tp(tp), **state, **ends, leader=leader
                )


def _record(
    history: History, number: int, tp: tuple[str, str, int], offset: int, value: int
) -> Iterator[Event]:
    """One record: sent, appended, replicated, below the high watermark, acknowledged."""
    leader = BROKERS[number % len(BROKERS)]
    producer = f"producer-{number}"
    operation = history.operation()
    sent = {
        "op": operation,
        "f": "send",
        "value": value,
        "acks": -1,
        "topic": tp[0],
        "partition": tp[2],
    }
    batch = {
        "leader_epoch": 0,
        "offset": offset,
        "last_offset": offset,
        "crc": value & 0xFFFFFFFF,
        "log_end_offset": offset + 1,
    }
    isr = list(BROKERS)
    yield history.event(producer, Kind.INVOKE, **sent)
    yield history.event(f"broker-{leader}", Kind.APPEND, **_tp(tp), **batch, role="leader")
    for broker in BROKERS:
        if broker != leader:
            yield history.event(
                f"broker-{broker}", Kind.APPEND, **_tp(tp), **batch, role="follower"
            )
    yield history.event(
        f"broker-{leader}",
        Kind.HIGH_WATERMARK,
        **_tp(tp),
        leader_epoch=0,
        high_watermark=offset + 1,
        log_end_offset=offset + 1,
        isr=isr,
        maximal_isr=isr,
    )
    yield history.event(
        f"broker-{leader}",
        Kind.PRODUCE_ACKNOWLEDGED,
        **_tp(tp),
        leader_epoch=0,
        offset=offset,
        last_offset=offset,
        acks=-1,
        high_watermark=offset + 1,
        isr=isr,
    )
    yield history.event(producer, Kind.OK, **sent, offset=offset)


def _poll(
    history: History,
    consumer: str,
    number: int,
    tp: tuple[str, str, int],
    first: int,
    last: int,
    stride: int,
) -> Iterator[Event]:
    """Read the offsets first..last of a partition, whose record at offset o holds o * stride + number + 1."""
    operation = history.operation()
    columns = {"op": operation, "f": "poll", "topic": tp[0], "partition": tp[2], "offset": first}
    offsets = list(range(first, last + 1))
    yield history.event(consumer, Kind.INVOKE, **columns)
    yield history.event(
        consumer,
        Kind.OK,
        **columns,
        offsets=offsets,
        values=[offset * stride + number + 1 for offset in offsets],
        high_watermark=last + 1,
    )
