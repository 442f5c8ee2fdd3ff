"""How things are said: what each property promises, and how an event's values are written.

Promises are for readers of reports; the exact definitions stand at the head of each checker's module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from nemesis.history.run_directory import RunInfo

PROMISES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "single-controller": "Every controller epoch has one owner, and only the owner acts in it.",
        "controller-epoch-grows": "The controller epoch grows by exactly one at each election.",
        "stale-controller-fenced": "Nobody obeys a deposed controller, and ZooKeeper takes no change from it.",
        "broker-epoch-fenced": "What was meant for, or said by, an earlier life of a broker has no effect.",
        "leader-epoch-grows": "The leader epoch of a partition never falls, and a new leader raises it.",
        "one-leader-per-epoch": "In one leader epoch at most one broker acts as the partition's leader.",
        "leader-from-isr": "A leader is elected from the in-sync replicas that are alive.",
        "legal-transition": "Partitions and replicas change their states only as Kafka's controller allows.",
        "hw-bounded": "The high watermark is never above the log end of any in-sync replica.",
        "log-start-bounded": "A log loses its oldest records only where they are committed, and as asked.",
        "hw-grows": "Within one leader epoch the high watermark never falls.",
        "no-truncation-below-hw": "No in-sync replica cuts its log below a high watermark it was part of.",
        "ack-after-commit": "With acks=all a produce is acknowledged only once it is committed.",
        "log-matching": "Replicas hold the same records at the same offsets.",
        "final-logs": "The files of all replicas hold the same committed records when all is over.",
        "leader-completeness": "A new leader holds every record committed in an earlier leader epoch.",
        "lost-write": "No committed record disappears.",
        "unseen": "Every acknowledged record is returned by the final reads.",
        "stale-read-above-hw": "No record is read before it is committed, and none vanishes that was read.",
        "duplicate": "No record is stored twice.",
        "inconsistent-offset": "An offset holds one record, whoever reads it and whenever.",
        "dirty-read": "No record is read whose send certainly failed.",
        "nonmonotonic-poll": "A consumer never goes back or reads a record again.",
        "poll-skip": "A consumer never skips a record.",
        "nonmonotonic-send": "Successive acknowledged sends of one producer get growing offsets.",
        "earlier-life-read": "No record of a deleted topic is read from the next topic of its name.",
        "deletion": "At the end there is every topic that must be there, and nothing of the deleted ones.",
        "reassignment": "At the end every partition lies on brokers that it was moved to, and nowhere else.",
        "convergence": "After the faults are healed the cluster is whole again in time.",
        "liveness": "Measured, not judged: how long the cluster was without what its users need.",
        "fault-effect": "Every fault struck measurably and was seen to be undone.",
        "linearizable-register": "Each operation takes effect at one moment between its call and its end.",
        "linearizable-cas-register": "Each operation takes effect at one moment between its call and its end.",
        "linearizable-mutex": "At any moment one process at most holds the lock.",
        "set-lost": "What was added is read from then on.",
        "set-unexpected": "Nothing is read that nobody added.",
        "set-duplicate": "No read returns an element twice.",
        "set-stale": "No later read misses what is known to be there.",
        "set-order": "One order of all operations explains every read.",
        "queue-lost": "What was enqueued is dequeued before the queue is empty.",
        "queue-unexpected": "Nothing is dequeued that nobody enqueued.",
        "queue-duplicate": "Nothing is dequeued more often than it was enqueued.",
        "queue-order": "What was enqueued first is dequeued first.",
        "queue-empty": "A queue is found empty only when nothing is in it.",
        "well-formed": "The transactions can be told apart and read.",
        "garbage-read": "Nothing is read that nobody wrote.",
        "duplicate-elements": "No list has an element twice.",
        "incompatible-order": "All reads of a list agree on the order of its elements.",
        "G1a": "Nothing is read that an aborted transaction wrote.",
        "G1b": "Of a transaction's writes to a key only the last one is read by others.",
        "dirty-update": "No committed write builds on one of an aborted transaction.",
        "internal": "A transaction's reads agree with what it read and wrote itself.",
        "lost-update": "No two transactions write a key on the ground of the same version of it.",
        "G0": "No cycle of writes that follow one another.",
        "G1c": "No cycle of writes and of reads that saw them.",
        "G-single": "No cycle with one read that missed a write.",
        "G-nonadjacent": "No cycle with several reads that missed writes, none next to another.",
        "G2-item": "No cycle with reads that missed writes.",
    }
)
_ORDERS: Final = MappingProxyType(
    {
        "-process": "counting the order in which each process worked",
        "-realtime": "counting what was over before another transaction began",
    }
)
"""What a cycle may consist of beside dependencies, by the end of the property's name."""

_SHOWN_ELSEWHERE = frozenset({"time", "process", "kind", "seq", "row"})
_MIN_RANGE = 5
"""Fewer consecutive numbers than this are written one by one."""
_MAX_RUNS = 12
_MAX_TEXT = 600


def promise(name: str) -> str:
    """Return what a property promises, in one sentence; for one unknown here, its name as words."""
    for ending, order in _ORDERS.items():
        if name.removesuffix(ending) in PROMISES and name.endswith(ending):
            return f"{PROMISES[name.removesuffix(ending)].rstrip('.')}, {order}."
    return PROMISES.get(name, f"{name.replace('-', ' ').capitalize()}.")


def columns(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (column, value as text) of what an event says beside when, who and what kind."""
    return [(name, text(value)) for name, value in event.items() if name not in _SHOWN_ELSEWHERE]


def text(value: Any) -> str:
    """Return a value for reading. Long lists of numbers become ranges, long texts are cut and say so."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        numbers = bool(value) and all(isinstance(item, int) for item in value)
        return f"[{_ranges(list(value)) if numbers else ', '.join(map(str, value))}]"
    words = str(value)
    return words if len(words) <= _MAX_TEXT else f"{words[:_MAX_TEXT]}… ({len(words):,} characters)"


def event_line(event: Mapping[str, Any]) -> str:
    """Return an event as one line of plain text."""
    said = " ".join(f"{name}={value}" for name, value in columns(event))
    time = event.get("time", -1)
    when = f"{time / 1e9:.6f}s" if time >= 0 else "zookeeper"
    return f"{when} {event.get('process', '?')} {event.get('kind', '?')} {said}".rstrip()


def quantity(name: str, value: float) -> tuple[str, str]:
    """Split a measured number into what it is and its value with the unit that its name ends in."""
    what, _, unit = name.rpartition("_")
    if what and unit in {"ms", "s", "ns", "us", "bytes", "records"}:
        return what.replace("_", " "), f"{value:,.10g} {unit}"
    return name.replace("_", " "), f"{value:,.10g}"


def phases(info: RunInfo) -> str:
    """Return what the run went through and how long each part took; the names alone where that is not told."""
    told = [f"{name} {seconds:,.1f} s" for name, seconds in info.durations_s.items()]
    return ", ".join(told or info.phases)


def measured(detail: str) -> str:
    """Return in words what was measured of a fault: ``held bytes 10; probes after: 0 of 3``.

    ``detail`` is the JSON object that the nemesis recorded; anything else is returned as it is.
    """
    try:
        told = json.loads(detail)
    except ValueError:
        return detail
    if not isinstance(told, dict):
        return detail
    return "; ".join(_measure(name, value, colon=": ") for name, value in told.items())


_SAID_AS: Final = {"held_bytes": "bytes stopped"}
"""A proxy holds them, a kernel drops them."""


def _measure(name: str, value: Any, *, colon: str) -> str:
    """One measured thing: a yes or no is named or denied, several are counted."""
    name = _SAID_AS.get(name, name).replace("_", " ")
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, dict):
        is_poll = all(isinstance(one, bool) for one in value.values())
        if is_poll and (len(value) > 1 or name.startswith("probes")):
            return f"{name}{colon}{sum(value.values())} of {len(value)}"
        inner = (_measure(key, one, colon=" ") for key, one in value.items())
        return f"{name}{colon}{', '.join(inner) or 'none'}"
    if isinstance(value, list):
        return f"{name}{colon}{', '.join(map(str, value)) or 'none'}"
    return f"{name} {text(value)}"


def _ranges(numbers: list[int]) -> str:
    """``1, 2, 3, 4, 5, 9`` as ``1–5, 9``; the order is kept, the middle of very long lists is left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words: list[str] = []
    for first, last in runs:
        if last - first < _MIN_RANGE - 1:
            words += [str(number) for number in range(first, last + 1)]
        else:
            words.append(f"{first}–{last}")
    if len(words) > _MAX_RUNS:
        left_out = len(words) - _MAX_RUNS
        words = [*words[: _MAX_RUNS - 2], f"… {left_out:,} more …", *words[-2:]]
    return ", ".join(words)
