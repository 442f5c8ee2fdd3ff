"""A made-up run for tests of reports: a minute, three brokers, faults, a failover, an ISR that shrinks.

Small enough to read, and with everything in it that a report draws. The last record's high watermark overtakes what
broker 2 holds while broker 2 is stalled: ``hw-bounded`` must find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome
from nemesis.history.events import Event, Kind
from nemesis.history.ingest import ingest
from nemesis.history.run_directory import RunDirectory, RunInfo

EVIL = "<script>alert(1)</script>"
"""No Kafka topic may be called so; a report must survive it all the same."""
SECOND = 1_000_000_000
START = 5_000 * SECOND
FAULTS = (
    ("partition", 6.0, 12.5, ["broker-1"]),
    ("kill-controller", 15.0, 21.0, ["broker-1"]),
    ("stall-follower", 24.0, 30.0, ["broker-2"]),
    ("pause", 26.5, 32.0, ["broker-3"]),
    ("expire-session", 35.0, 40.2, ["broker-2"]),
)
PHASES = (
    ("warm-up", 0.0),
    ("faults", 4.0),
    ("heal", 44.0),
    ("quiet", 50.0),
    ("final-reads", 52.0),
    ("convergence", 55.0),
    ("end", 57.0),
)
REPLICAS = [1, 2, 3]


def at(seconds: float) -> int:
    return START + round(seconds * SECOND)


def info(**columns: object) -> RunInfo:
    about: dict[str, object] = {
        "scenario": "partition-controller",
        "seed": 7,
        "mutant": "hw-follows-leader",
        "time_limit_s": 50.0,
        "command_line": ["nemesis", "run", "partition-controller", "--seed", "7"],
        "replay": "nemesis run partition-controller --seed 7 --mutant hw-follows-leader",
        "versions": {"nemesis": "0.1.0", "python": "3.11.2", "zookeeper": "3.9.5"},
        "config": {
            "broker": {"min.insync.replicas": 2},
            "phases": {"warm_up_s": 4, "heal_s": 6},
            "workload": {"topics": ["orders", EVIL]},
        },
        "plan": [{"at_s": start, "fault": name} for name, start, _, _ in FAULTS],
        "phases": [name for name, _ in PHASES],
    }
    return RunInfo(**{**about, **columns})  # type: ignore[arg-type]


def events(*, records_per_s: int = 5, partitions: int = 2) -> Iterator[Event]:
    """Yield the story, in no particular order."""
    rng = Random(1)
    seqs: dict[str, int] = {}

    def event(seconds: float, process: str, kind: Kind, **columns: object) -> Event:
        seqs[process] = seqs.get(process, 0) + 1
        node = int(process.removeprefix("broker-")) if process.startswith("broker-") else None
        fields = {"node": node, "incarnation": node, "seq": seqs[process], **columns}
        return Event(time=at(seconds), process=process, kind=kind.value, **fields)  # type: ignore[arg-type]

    for name, start in PHASES:
        yield event(start, "harness", Kind.PHASE, phase=name)
    for number, (name, start, stop, targets) in enumerate(FAULTS):
        about = {"fault": name, "fault_id": number, "targets": targets}
        yield event(start - 0.1, "nemesis", Kind.FAULT_INVOKE, **about)
        measured = '{"held_bytes": 4096}'
        yield event(
            start, "nemesis", Kind.FAULT_APPLIED, **about, effect="measured", detail=measured
        )
        yield event(stop, "nemesis", Kind.FAULT_HEALED, **about, effect="verified")
    yield event(
        42.0, "nemesis", Kind.FAULT_SKIPPED, fault="pause", fault_id=9, error="no such follower"
    )
    for seconds, node, epoch in ((0.4, 1, 1), (8.3, 2, 2), (17.2, 3, 3), (36.9, 1, 4)):
        yield event(seconds, f"broker-{node}", Kind.CONTROLLER_ELECTED, controller_epoch=epoch)
    yield event(12.6, "broker-1", Kind.CONTROLLER_RESIGNED, controller_epoch=1)
    yield event(37.5, "broker-3", Kind.CONTROLLER_RESIGNED, controller_epoch=3)
    for topic in ("orders", EVIL):
        for partition in range(partitions):
            tp: dict[str, Any] = {"topic": topic, "topic_id": f"id-{topic}", "partition": partition}
            yield from _partition(event, rng, tp, records_per_s)
    yield event(56.0, "harness", Kind.CONVERGENCE, check="leaders", error="NONE", duration_ms=1_830)


def _partition(
    event: Callable[..., Event], rng: Random, tp: dict[str, Any], records_per_s: int
) -> Iterator[Event]:
    """Two leaders one after the other; broker 2 stalls, leaves the ISR late, and comes back."""
    process = f"producer-{tp['topic']}-{tp['partition']}"
    for seconds, leader, epoch, isr in ((0.8, 1, 0, REPLICAS), (17.9, 3, 1, [2, 3])):
        yield event(
            seconds,
            f"broker-{leader}",
            Kind.LEADER_ELECTED,
            **tp,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            strategy="new" if epoch == 0 else "offline",
        )
    for seconds, isr in ((22.4, REPLICAS), (26.1, [1, 3]), (31.3, REPLICAS)):
        yield event(seconds, "broker-3", Kind.ISR_CHANGE_COMMITTED, **tp, leader_epoch=1, isr=isr)
    for node in REPLICAS:
        yield event(
            0.7, f"broker-{node}", Kind.LOG_LOADED, **tp, log_end_offset=0, high_watermark=0
        )
    values: list[int] = []
    position = 0
    for number in range(records_per_s * 50):
        seconds = 1.0 + number / records_per_s
        op, begun = number, seconds
        send = {"op": op, "f": "send", "value": number, "acks": -1, **tp}
        yield event(begun, process, Kind.INVOKE, **send)
        if 15.0 <= seconds < 17.9:
            yield event(begun + 1.0, process, Kind.INFO, **send, error="NOT_LEADER_OR_FOLLOWER")
            continue
        if 6.0 <= seconds < 8.0 and number % 2:
            yield event(begun + 0.004, process, Kind.FAIL, **send, error="CONNECTION_REFUSED")
            continue
        leader, epoch = (1, 0) if seconds < 17.0 else (3, 1)
        base, offset = {"leader_epoch": epoch, "crc": number}, len(values)
        values.append(number)
        stalled = 24.0 <= seconds < 26.1
        for node in REPLICAS:
            if stalled and node == 2:
                continue
            delay = 0.001 if node == leader else 0.003
            role = "leader" if node == leader else "follower"
            ends = {"offset": offset, "last_offset": offset, "log_end_offset": offset + 1}
            yield event(
                seconds + delay, f"broker-{node}", Kind.APPEND, **tp, **base, **ends, role=role
            )
        yield event(
            seconds + 0.004,
            f"broker-{leader}",
            Kind.HIGH_WATERMARK,
            **tp,
            leader_epoch=epoch,
            high_watermark=offset + 1,
            log_end_offset=offset + 1,
            isr=[1, 3] if 26.1 <= seconds < 31.3 else REPLICAS,
            maximal_isr=[1, 3] if 26.1 <= seconds < 31.3 else REPLICAS,
        )
        latency = 0.005 + rng.expovariate(200)
        yield event(begun + latency, process, Kind.OK, **send, offset=offset, node=leader)
        if number % 5 == 0:
            poll = {"op": op, "f": "poll", "offset": position, **tp}
            consumer = process.replace("producer", "consumer")
            read = list(range(position, len(values)))
            position = len(values)
            yield event(begun, consumer, Kind.INVOKE, **poll)
            yield event(
                begun + latency * 2,
                consumer,
                Kind.OK,
                **poll,
                offsets=read,
                values=values[read[0] :],
            )


def write(store: Path, *, about: RunInfo | None = None, **size: int) -> RunDirectory:
    """Write the story as a run directory, ingested; return it."""
    run = RunDirectory.create(store, about or info())
    files: dict[str, list[bytes]] = {}
    for event in events(**size):
        name = event.process if event.process.startswith("broker-") else event.process.split("-")[0]
        files.setdefault(name, []).append(msgspec.json.encode(event))
    # Without ZooKeeper's log the history would not be whole; one line of it is enough here.
    session = Event(time=-1, process="zookeeper", kind="session-created", zxid=1, session=1)
    files["zookeeper"] = [msgspec.json.encode(session)]
    for name, lines in files.items():
        run.raw_file(name).write_bytes(b"\n".join(lines) + b"\n")
    ingest(run)
    return run


def judged(run: RunDirectory) -> Outcome:
    """What the checkers make of the story's high watermarks, and of what was missing in it."""
    names = ["hw-bounded", "hw-grows", "convergence", "liveness", "fault-effect"]
    return check(run.history, select(names))
