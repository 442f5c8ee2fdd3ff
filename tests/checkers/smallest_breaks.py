"""The smallest history that breaks each property, in each way, and the page that shows what is said of it.

``python -m tests.checkers.smallest_breaks`` writes ``docs/findings.md`` anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from nemesis.checkers import CHECKERS
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Finding
from nemesis.history.events import Event
from nemesis.history.memory import history_of
from tests.checkers.administration import asked, seen, topic_znode
from tests.checkers.histories import (
    TP,
    acknowledged,
    append,
    become_leader,
    broker,
    final,
    grant,
    high_watermark,
    loaded,
    log_start,
    poll,
    send,
    started,
    state,
    truncate,
    znode,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "findings.md"
MEASURED: Final = frozenset({"liveness"})
"""Properties that find nothing."""

_MS: Final = 1_000_000
CREATED = znode(1, 9, "/controller_epoch", zk_op="create", controller_epoch=0)


def _sent(time: int, node: int, epoch: int, incarnation: int = 1) -> Event:
    about: dict[str, Any] = {"controller_epoch": epoch, "peer": 3, "api": "LeaderAndIsr"}
    return broker(time, node, "control-request-sent", incarnation=incarnation, **about)


def _handled(time: int, node: int, api: str, **columns: Any) -> Event:
    return broker(time, node, "control-request-handled", api=api, error="NONE", **columns)


def _registered(time: int, epoch: int, incarnation: int = 1) -> Event:
    return broker(time, 3, "broker-registered", broker_epoch=epoch, incarnation=incarnation)


def _knows(time: int, peer: int, epoch: int) -> Event:
    about: dict[str, Any] = {
        "controller_epoch": 4,
        "peer": peer,
        "broker_epoch": epoch,
        "api": "UpdateMetadata",
    }
    return broker(time, 1, "control-request-sent", **about)


def _altered(time: int, proposer: int, isr: dict[int, int]) -> Event:
    about: dict[str, Any] = {
        "isr": list(isr),
        "isr_epochs": list(isr.values()),
        "error": "NONE",
        "zxid": 99,
    }
    return broker(time, 1, "alter-partition-handled", peer=2, broker_epoch=proposer, **about, **TP)


def _elected(time: int, zxid: int, leader: int, isr: list[int], **columns: Any) -> Event:
    about: dict[str, Any] = {
        "leader": leader,
        "leader_epoch": 1,
        "isr": isr,
        "detail": "offline",
        "zxid": zxid,
    }
    about |= {"replicas": [1, 2, 3], "live": [1, 2, 3], "controller_epoch": 1}
    return broker(time, 1, "leader-elected", **TP, **(about | columns))


def _moved(time: int, detail: str, peer: int | None = None) -> Event:
    about: dict[str, Any] = {"controller_epoch": 4, "detail": detail, "peer": peer}
    return broker(time, 1, "transition", **about, **TP)


def _follower(time: int, node: int, epoch: int, end: int) -> Event:
    about: dict[str, Any] = {"leader": 1, "leader_epoch": epoch, "log_end_offset": end}
    return broker(time, node, "become-follower", **about, **TP)


def _files(time: int, node: int, *batches: tuple[int, int], **columns: Any) -> list[Event]:
    """A log in a broker's files: its batches of one record are (offset, CRC)."""
    about: dict[str, Any] = {"process": "harness", "node": node, **TP}
    end = max((offset + 1 for offset, _ in batches), default=0)
    told: dict[str, Any] = {"log_end_offset": end, "high_watermark": end, **columns}
    told = {"log_start_offset": 0, "offset": 0, "detail": "alive", "error": "NONE", **told}
    log = Event(time=time, seq=time, kind="stored-log", **about, **told)
    stored = [
        Event(
            time=time,
            seq=time + place,
            kind="stored-batch",
            offset=offset,
            last_offset=offset,
            leader_epoch=0,
            crc=crc,
            **about,
        )
        for place, (offset, crc) in enumerate(batches, start=1)
    ]
    return [log, *stored]


def _harness(time: int, kind: str, **columns: Any) -> Event:
    return Event(time=time, process="harness", kind=kind, seq=time, **columns)


def _fault(time: int, kind: str, number: int = 0, **columns: Any) -> Event:
    about: dict[str, Any] = {"fault": "pause", "fault_id": number, "targets": ["broker-2"]}
    return Event(time=time, process="nemesis", kind=kind, seq=time, **(about | columns))


def _assigned(zxid: int, *replicas: int) -> Event:
    return topic_znode(zxid, f'{{"partitions": {{"0": {list(replicas)}}}}}', zk_op="setData")


def _about(time: int, f: str, *replicas: int) -> list[Event]:
    return asked(time, f, partition=0, replicas=list(replicas) or None)


History = list[Event | list[Event]]

_CREATE = asked(1, "create-topic", value=2)
_DELETE = asked(5, "delete-topic")
_FIRST = _about(1, "describe", 1, 2)
_MOVED = _about(3, "reassign", 2, 3)
_FORBIDDEN, _PERMITTED = started(0, 9, unclean=False), started(0, 9, unclean=True)

BREAKS: Final[Mapping[str, list[History]]] = MappingProxyType(
    {
        "single-controller": [
            [CREATED, grant(2, 10, 1, 1), _sent(6, 1, 1), _sent(7, 2, 1)],
            [grant(2, 10, 1, 1), grant(3, 20, 2, 1)],
            [CREATED, grant(2, 10, 1, 1), grant(3, 20, 2, 2), state(4, 10, 1, 0, [1], epoch=2)],
            [_sent(6, 1, 4), _sent(7, 2, 4)],
            [grant(2, 10, 1, 1), _sent(6, 1, 1), _sent(7, 1, 1, incarnation=2)],
            [grant(2, 10, 1, 2), _sent(6, 1, 1)],
            [grant(2, 10, 1, 1), _sent(6, 2, 2)],
        ],
        "controller-epoch-grows": [
            [grant(2, 10, 1, 1), grant(9, 20, 2, 3)],
            [grant(2, 10, 1, 2), grant(9, 20, 2, 2)],
            [grant(2, 10, 1, 1), znode(9, 30, "/controller_epoch", zk_op="delete")],
            [grant(2, 10, 1, 1), znode(9, 30, "/controller_epoch", data="one")],
        ],
        "stale-controller-fenced": [
            [
                _handled(6, 3, "LeaderAndIsr", controller_epoch=2),
                _handled(7, 3, "LeaderAndIsr", controller_epoch=1),
            ],
            [
                CREATED,
                grant(2, 10, 1, 1),
                state(3, 10, 1, 0, [1, 3]),
                grant(4, 20, 2, 2),
                state(5, 10, 3, 1, [3]),
            ],
            [
                grant(2, 10, 1, 1),
                state(3, 10, 3, 0, [1, 3]),
                znode(4, 30, "/brokers/ids/2", zk_op="create", node=2),
                state(5, 30, 3, 0, [3]),
            ],
            [grant(2, 10, 1, 1), state(3, 10, 3, 0, [1, 3]), state(4, 30, 3, 0, [3])],
            [state(3, 10, 1, 0, [1])],
        ],
        "broker-epoch-fenced": [
            [_registered(1, 7), _registered(2, 9), _handled(3, 3, "StopReplica", broker_epoch=7)],
            [
                _registered(1, 7),
                _registered(2, 6, incarnation=2),
                _handled(3, 3, "StopReplica", broker_epoch=7, incarnation=2),
            ],
            [_knows(1, 2, 21), _altered(2, 20, {2: 20, 3: 30})],
            [_knows(1, 3, 31), _altered(2, 20, {2: 20, 3: 30})],
        ],
        "leader-epoch-grows": [
            [state(1, 9, 1, 4, [1, 2]), state(2, 9, 1, 3, [1, 2])],
            [state(1, 9, 1, 4, [1, 2]), state(2, 9, 2, 4, [1, 2])],
            [_follower(1, 2, 3, 0), become_leader(2, 2, 2, 0)],
        ],
        "one-leader-per-epoch": [
            [become_leader(1, 1, 4, 0), append(2, 2, 4, 0, role="leader")],
            [state(1, 9, 1, 4, [1, 2], zk_version=0), become_leader(5, 2, 4, 0)],
            [state(1, 9, -1, 4, [1, 2], zk_version=0), acknowledged(5, 1, 4, 0)],
            [
                state(1, 9, 1, 0, [1, 2], zk_version=0, zk_op="create"),
                state(2, 9, 2, 2, [2], zk_version=1),
                become_leader(5, 1, 1, 0),
            ],
            [state(1, 9, 1, 2, [1], zk_version=0), become_leader(5, 1, 3, 0)],
        ],
        "leader-from-isr": [
            [_FORBIDDEN, state(1, 9, 1, 0, [1, 2]), state(2, 9, 3, 1, [3])],
            [state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 1, [])],
            [state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 1, [2])],
            [_assigned(1, 1, 2), state(2, 9, 1, 0, [1, 2]), state(3, 9, 1, 0, [1, 2, 3])],
            [state(1, 9, 4, 1, [4]), _elected(5, 1, 4, [4])],
            [state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [2]), _elected(5, 2, 2, [2], live=[1])],
            [
                state(1, 9, 1, 0, [1, 2]),
                state(2, 9, 2, 1, [2]),
                _elected(5, 2, 2, [2], detail="remove-from-isr"),
            ],
            [
                state(1, 9, 1, 0, [1]),
                state(2, 9, 3, 1, [3]),
                _elected(5, 2, 3, [3], detail="unclean"),
            ],
        ],
        "legal-transition": [
            [_moved(1, "partition Online->New")],
            [
                _moved(1, "replica NonExistent->New", 3),
                _moved(2, "replica New->Online", 3),
                _moved(3, "replica Offline->DeletionStarted", 3),
            ],
            [_moved(1, "replica Offline->DeletionStarted", 3)],
            [_moved(1, "partition sideways")],
        ],
        "hw-bounded": [
            [append(1, 2, 0, 3), high_watermark(2, 1, 0, 5, [1, 2])],
            [loaded(1, 1, 0), high_watermark(2, 1, 0, 5, [1], log_end_offset=4)],
            [broker(0, 2, "broker-started"), high_watermark(2, 1, 0, 5, [1, 2])],
            [high_watermark(2, 1, 0, 5, [1, 2])],
        ],
        "hw-grows": [[high_watermark(1, 1, 0, 5, [1]), high_watermark(2, 1, 0, 4, [1])]],
        "no-truncation-below-hw": [
            [high_watermark(1, 1, 0, 5, [1, 2]), truncate(2, 2, 4, high_watermark=4)],
            [high_watermark(1, 1, 0, 5, [1, 2]), loaded(2, 2, 4)],
            [
                _PERMITTED,
                high_watermark(1, 1, 0, 5, [1, 2]),
                _elected(2, 9, 3, [3], detail="unclean"),
                truncate(3, 2, 4),
            ],
        ],
        "ack-after-commit": [
            [high_watermark(1, 1, 0, 7, [1, 2]), acknowledged(2, 1, 0, 7, high_watermark=7)],
        ],
        "log-start-bounded": [
            [log_start(1, 1, 6, 9, high_watermark=5, detail="segment-deletion")],
            [
                log_start(1, 1, 4, 9, high_watermark=9, detail="segment-deletion"),
                log_start(2, 1, 3, 9, high_watermark=9, detail="segment-deletion"),
            ],
            [log_start(1, 1, 4, 9, high_watermark=9, detail="client-record-deletion")],
            [
                broker(
                    1,
                    1,
                    "log-cleaned",
                    offset=0,
                    last_offset=5,
                    high_watermark=5,
                    detail="9 to 4",
                    **TP,
                )
            ],
        ],
        "log-matching": [
            [append(1, 1, 2, 3, crc=7, role="leader"), append(2, 2, 2, 3, crc=8)],
            [
                become_leader(1, 1, 0, 0),
                append(2, 1, 0, 0, role="leader"),
                append(3, 2, 0, 0),
                high_watermark(4, 1, 0, 1, [1, 2]),
                become_leader(5, 1, 1, 0),
                append(6, 1, 1, 0, role="leader", crc=1),
            ],
        ],
        "leader-completeness": [
            [high_watermark(1, 1, 0, 5, [1, 2]), become_leader(2, 2, 1, 4)],
            [
                become_leader(1, 1, 1, 0),
                append(2, 1, 1, 0, role="leader"),
                append(3, 2, 0, 0),
                acknowledged(4, 1, 1, 0),
                become_leader(5, 2, 2, 1),
            ],
            [
                _PERMITTED,
                high_watermark(1, 1, 0, 5, [1]),
                _elected(2, 9, 2, [2], detail="unclean"),
                become_leader(3, 2, 1, 2),
            ],
        ],
        "final-logs": [
            [_files(50, 1, (0, 7)), _files(60, 2, (0, 8))],
            [_files(50, 1, (0, 7), (2, 9))],
            [_files(50, 1, (0, 7), high_watermark=3, error="00.log is damaged at byte 68")],
            [high_watermark(1, 1, 0, 2, [1, 2]), _files(50, 2, (0, 7), high_watermark=1)],
            [_harness(50, "stored-log", node=2, error="EIO")],
        ],
        "lost-write": [[send(1, 7, offset=0), send(3, 8, offset=1), poll(9, 0, {1: 8})]],
        "unseen": [
            [send(1, 7, offset=0), final(9, {})],
            [send(1, 7, offset=0)],
            [
                _PERMITTED,
                send(1, 7, offset=0),
                _elected(4, 9, 2, [2], detail="unclean"),
                final(9, {}),
            ],
        ],
        "stale-read-above-hw": [
            [poll(1, 0, {0: 7, 1: 8}, mark=1)],
            [high_watermark(1, 1, 0, 1, [1, 2]), poll(3, 0, {0: 7, 1: 8})],
            [poll(1, 0, {0: 7}), final(9, {})],
        ],
        "duplicate": [
            [send(1, 7, offset=0, role="idempotent"), poll(3, 0, {0: 7, 1: 7})],
            [send(1, 7, offset=0), poll(3, 0, {0: 7, 1: 7})],
        ],
        "inconsistent-offset": [[send(1, 7, offset=0), poll(3, 0, {0: 8})]],
        "dirty-read": [[send(1, 7, "fail", error="NOT_ENOUGH_REPLICAS"), poll(3, 0, {0: 7})]],
        "nonmonotonic-poll": [
            [poll(1, 0, {0: 7, 1: 8}), poll(3, 1, {1: 8})],
            [poll(1, 1, {0: 7, 1: 8})],
        ],
        "poll-skip": [[poll(1, 0, {0: 7}), poll(3, 2, {2: 9})], [poll(1, 0, {1: 8})]],
        "nonmonotonic-send": [[send(1, 7, offset=5), send(3, 8, offset=4)]],
        "earlier-life-read": [[poll(1, 0, {0: 7}), poll(7, 0, {0: 7, 1: 8}, topic_id="later")]],
        "deletion": [
            [
                _CREATE,
                asked(3, "create-topic", value=1),
                seen("zookeeper", {"t_0": [1], "t_1": [1]}),
            ],
            [_CREATE, seen("zookeeper", {"t_0": [1, 2]})],
            [
                _CREATE,
                topic_znode(1),
                _DELETE,
                znode(6, 9, "/admin/delete_topics/t", zk_op="create"),
                topic_znode(7, zk_op="delete"),
                znode(8, 9, "/admin/delete_topics/t", zk_op="delete"),
                seen("zookeeper"),
                seen("logs", {"t_0": [1, 2]}, node=2),
            ],
            [
                _CREATE,
                topic_znode(1),
                znode(2, 9, "/brokers/topics/t/partitions", zk_op="create"),
                _DELETE,
                znode(6, 9, "/admin/delete_topics/t", zk_op="create"),
                topic_znode(7, zk_op="delete"),
                seen("zookeeper"),
            ],
            [topic_znode(1), topic_znode(2, topic="u")],
            [topic_znode(1), topic_znode(7, zk_op="delete")],
            [
                _CREATE,
                seen("zookeeper", {"t_0": [1], "t_1": [1]}),
                seen("logs", node=3, error="EIO"),
            ],
        ],
        "reassignment": [
            [_FIRST, _MOVED, seen("zookeeper", {"t_0": [1, 2]})],
            [
                _FIRST,
                seen("zookeeper", {"t_0": [1, 2]}),
                seen("logs", {"t_0": []}, node=1),
                seen("logs", node=2),
            ],
            [
                _assigned(1, 1, 2),
                grant(2, 9, 3, 1),
                znode(3, 8, "/brokers/ids/1", zk_op="create", node=1),
                _assigned(5, 2, 3),
                seen("zookeeper", {"t_0": [2, 3]}),
                seen("logs", {"t_0": []}, node=1),
            ],
            [
                _assigned(1, 1, 2),
                _assigned(5, 2, 3),
                seen("zookeeper", {"t_0": [2, 3]}),
                seen("logs", {"t_0": []}, node=1),
            ],
        ],
        "convergence": [
            [_harness(5, "convergence", detail="leaders", error="no leader", offset=30_000, **TP)],
            [
                _harness(4, "harness-lag", offset=1_500),
                _harness(5, "convergence", detail="leaders", error="no leader", offset=30_000),
            ],
            [
                _harness(
                    5, "convergence", detail="leaders", error="HARNESS: ZooKeeper did not answer"
                )
            ],
        ],
        "fault-effect": [
            [_fault(1, "fault-applied", effect="none")],
            [_fault(1, "fault-skipped", error="no such follower")],
        ],
    }
)
"""By property; of each the smallest first. A history breaks it in one way."""


def findings() -> Iterator[tuple[str, Finding]]:
    """Yield each property with what is found in each of its histories, its events taken for 1 ms apart."""
    for name, histories in BREAKS.items():
        for history in histories:
            result = next(
                one
                for one in check(history_of(_spread(history)), [CHECKERS[name].check()]).results
                if one.property == name
            )
            assert result.findings, f"{name} is not broken by {history}"
            yield name, result.findings[0]


def _spread(history: History) -> list[Event]:
    flat = [event for part in history for event in (part if isinstance(part, list) else [part])]
    numbers = count()
    spread = []
    for event in flat:
        columns = {name: getattr(event, name) for name in event.__struct_fields__}
        columns["time"] = event.time * _MS if event.time >= 0 else event.time
        columns["seq"] = event.seq if event.time < 0 else next(numbers)
        spread.append(Event(**columns))
    return spread


HEAD: Final = """\
# What findings say

What is said of the smallest history that breaks each property, in each way that it can be broken: the sentence, then
the proof step by step. `invalid`: it is proved. `unknown`: it cannot be decided. `valid`: it is reported and allowed.
The definitions are at the head of the modules of `checkers/`. `python -m tests.checkers.smallest_breaks` writes this
page from the histories there, and a test keeps it current.
"""


def page() -> str:
    """Return the page of all explanations."""
    lines = [HEAD.rstrip()]
    last = None
    for name, found in findings():
        if name != last:
            lines += ["", f"## {name}"]
            last = name
        about = "" if found.sentence.startswith(f"{found.key}: ") else f"{found.key}: "
        lines += ["", f"**{found.verdict.value}**: {about}{found.sentence}", ""]
        lines += [f"{number}. {step}" for number, step in enumerate(found.steps, start=1)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
