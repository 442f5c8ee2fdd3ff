"""Random histories of Jepsen's kafka workload, as text, and what the definitions of its anomalies say of them.

Clients do one operation at a time. Each log has its records at growing offsets with gaps. Chance makes some answers
wrong. The anomalies are looked for in the operations themselves, one pair at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import networkx as nx

KEYS = ("x", "y")
CLIENTS = (0, 1, 2)
KINDS = ("ok",) * 16 + ("info", "fail", "none")
DOUBTFUL_KINDS = ("ok",) * 10 + ("info",) * 3 + ("fail", "none")
FINAL = 1_000
"""The position at which final polls begin, behind all else."""
IN_DOUBT = "unseen-in-doubt"
Record = tuple[int, int]
"""Offset and value."""


@dataclass
class Operation:
    process: int
    f: str
    kind: str
    began: int
    """Positions of its lines."""
    ended: int = 0
    keys: tuple[str, ...] = ()
    """What is assigned or subscribed."""
    sends: list[tuple[str, int, int | None]] = field(default_factory=list)
    """Key, value, and the offset that was acknowledged."""
    polls: list[dict[str, list[Record]]] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return self.kind == "ok"

    def values(self, *, is_answer: bool) -> str:
        if self.f in ("assign", "subscribe"):
            return f"[{' '.join(f':{key}' for key in self.keys)}]"
        micros = [
            f"[:send :{key} {value if offset is None or not is_answer else f'[{offset} {value}]'}]"
            for key, value, offset in self.sends
        ]
        for polled in self.polls:
            records = " ".join(
                f":{key} [{' '.join(f'[{offset} {value}]' for offset, value in several)}]"
                for key, several in polled.items()
                if several
            )
            micros.append(f"[:poll {{{records}}}]" if is_answer else "[:poll]")
        return f"[{' '.join(micros)}]"


def text(operations: Sequence[Operation]) -> str:
    """Return the lines of a history."""
    lines = []
    for op in operations:
        asked, answer = op.values(is_answer=False), op.values(is_answer=op.kind != "none")
        lines.append((op.began, "invoke", op, asked))
        if op.kind != "none":
            lines.append((op.ended, op.kind, op, answer))
    return "".join(
        f"{{:index {index} :time {10 * index + 10} :type :{kind} :process {op.process} :f :{op.f} :value {value}}}\n"
        for index, (_, kind, op, value) in enumerate(sorted(lines, key=lambda line: line[0]))
    )


def random_log(
    rng: Random, *, is_honest: bool = False, poll_kinds: Sequence[str] = KINDS
) -> list[Operation]:
    """Return a few operations on one log or two; ``is_honest``: all answers are right, and polls lag behind nothing.

    ``poll_kinds``: how polls end, each as likely as any other.
    """
    keys = KEYS[: rng.choice([1, 2])]
    logs: dict[str, list[Record]] = {key: [] for key in keys}
    positions: dict[tuple[int, str], int] = {}
    assigned: dict[int, tuple[str, ...]] = {}
    off = 0.0 if is_honest else rng.choice([0.0, 0.1, 0.3])
    operations: list[Operation] = []
    busy: dict[int, int] = {}
    value = 0
    for number in range(rng.randint(5, 12)):
        began = 20 * number - rng.choice([0, 5, 25])
        process = next((p for p in rng.sample(CLIENTS, 3) if busy.get(p, -99) < began), None)
        if process is None:
            continue
        f = rng.choice(["send", "send", "poll", "poll", "poll", "txn", "txn"])
        if process not in assigned or rng.random() < 0.05:
            f = rng.choice(["assign", "assign", "assign", "subscribe"])
        kind = rng.choice(poll_kinds if f == "poll" else DOUBTFUL_KINDS)
        op = Operation(process, f, kind, 2 * began, 2 * (20 * number + rng.choice([1, 5, 25])) + 1)
        busy[process] = (op.ended + 1) // 2 if kind != "none" else 10_000
        happens = kind == "ok" or (kind != "fail" and rng.random() < 0.5)
        if f in ("assign", "subscribe"):
            op.kind, op.keys = "ok", tuple(rng.sample(keys, rng.randint(1, len(keys))))
            busy[process] = (op.ended + 1) // 2
            for key in op.keys:
                if f == "subscribe" or key not in assigned.get(process, ()):
                    positions[process, key] = 0
            assigned[process] = op.keys
        for _ in range(rng.choice([1, 2, 2, 3]) if f in ("send", "txn") else 0):
            value += 1
            key = rng.choice(keys)
            offset = (logs[key][-1][0] if logs[key] else -1) + rng.choice([1, 1, 2])
            if happens and rng.random() >= off:
                logs[key].append((offset, value))
            shown = offset - (rng.random() < off) if kind == "ok" else None
            op.sends.append(
                (key, value, None if shown is None or shown < 0 or rng.random() < 0.05 else shown)
            )
        if f in ("poll", "txn"):
            op.polls.append(
                _polled(rng, op, logs, positions, assigned[process], off, rng.randint(is_honest, 3))
            )
        operations.append(op)
    idle = [process for process in CLIENTS if busy.get(process, 0) < 10_000]
    if idle and rng.random() < 0.5:
        operations += _final_polls(rng, rng.choice(idle), logs, positions, assigned)
    return operations


def _final_polls(
    rng: Random,
    process: int,
    logs: dict[str, list[Record]],
    positions: dict[tuple[int, str], int],
    assigned: dict[int, tuple[str, ...]],
) -> list[Operation]:
    """A client is assigned all logs, reads what it has not read, and then nothing."""
    start = 2 * FINAL
    operations = [Operation(process, "assign", "ok", start, start + 1, tuple(logs))]
    for key in logs:
        if key not in assigned.get(process, ()):
            positions[process, key] = 0
    for number in range(1, 4):
        op = Operation(process, "poll", "ok", start + 2 * number, start + 2 * number + 1)
        op.polls.append(_polled(rng, op, logs, positions, tuple(logs), 0.0, 2 * number))
        operations.append(op)
    return operations


def _polled(
    rng: Random,
    op: Operation,
    logs: dict[str, list[Record]],
    positions: dict[tuple[int, str], int],
    keys: Sequence[str],
    off: float,
    most: int,
) -> dict[str, list[Record]]:
    polled: dict[str, list[Record]] = {}
    sent = {value for _, value, _ in op.sends}
    for key in keys:
        begin = positions.get((op.process, key), 0)
        begin += (rng.random() < off) - (rng.random() < off and begin > 0)
        visible = [record for record in logs[key] if record[1] not in sent or rng.random() < off]
        records = visible[begin : begin + most]
        if records and rng.random() < off:
            records[0] = (records[0][0] + rng.choice([0, 1]), records[0][1] + rng.choice([0, 1]))
        if op.kind == "none" or (op.kind in ("info", "fail") and rng.random() < 0.5):
            records = []
        elif op.is_ok:
            positions[op.process, key] = begin + len(records)
        polled[key] = records
    return polled


def anomalies(operations: Sequence[Operation]) -> set[str]:
    """Return the anomalies that a history has, by their definitions.

    ``IN_DOUBT`` is ``unseen`` or ``lost-write``, if only consumers of committed records show it. A record is lost or
    unseen if a consumer passed over it and no poll in doubt before may have returned it.
    """
    names: set[str] = set()
    ordered = sorted(operations, key=lambda op: op.began)
    for key in KEYS:
        names.update(_of_log(ordered, key))
    if any(_is_missed(ordered, op) for op in ordered if op.kind in ("info", "none")):
        names.add(IN_DOUBT)
    return names | _of_transactions(ordered)


def _read(op: Operation, key: str) -> list[Record]:
    """What an operation reports to have polled, with any outcome."""
    return [record for polled in op.polls for record in polled.get(key, ())]


def _of_log(operations: Sequence[Operation], key: str) -> Iterator[str]:
    read = [record for op in operations for record in _read(op, key)]
    sends = [(op, value, offset) for op in operations for k, value, offset in op.sends if k == key]
    placed = [(offset, value) for op, value, offset in sends if op.is_ok and offset is not None]
    known = {*placed, *read}
    values = {value for _, value in read}
    if any(a[0] == b[0] and a[1] != b[1] for a in known for b in known):
        yield "inconsistent-offset"
    if any(a[0] != b[0] and a[1] == b[1] for a in known for b in known):
        yield "duplicate"
    if any(value not in values and _is_passed(operations, key, offset) for offset, value in placed):
        yield "lost-write"
    if any(op.kind == "fail" and value in values for op, value, _ in sends):
        yield "dirty-read"
    for process in CLIENTS:
        own = [offset for op, _, offset in sends if op.process == process and op.is_ok]
        if any(b <= a for a, b in pairwise(o for o in own if o is not None)):
            yield "nonmonotonic-send"
        for given in _given(operations, process, key):
            if any(b <= a for a, b in pairwise(given)):
                yield "nonmonotonic-poll"
            if any(a < offset < b for a, b in pairwise(given) for offset, _ in known):
                yield "poll-skip"
    if any(
        op.is_ok
        and value not in values
        and (offset is None or offset > max((o for o, _ in read), default=-1))
        and _is_read_to_end(
            operations,
            key,
            op.ended,
            max((o for o, _ in read), default=-1),
            is_placed=offset is not None,
        )
        for op, value, offset in sends
    ):
        yield "unseen"


def proofs(operations: Sequence[Operation], op: Operation) -> list[int]:
    """When the polls of other operations ended that returned a record of this one."""
    sent = {(key, value) for key, value, _ in op.sends}
    return [
        other.ended
        for other in operations
        for key in KEYS
        if other is not op and any((key, value) in sent for _, value in _read(other, key))
    ]


def _is_missed(operations: Sequence[Operation], op: Operation) -> bool:
    """Whether a poll returned a record of a transaction in doubt, and none another one that was there by then."""
    proved = proofs(operations, op)
    for key, value, _ in op.sends if proved else ():
        read = [record for other in operations for record in _read(other, key)]
        last = max((offset for offset, _ in read), default=-1)
        is_read = any(value == other for _, other in read)
        if not is_read and _is_read_to_end(operations, key, min(proved), last):
            return True
        later = {v for o in operations for k, v, _ in o.sends if k == key and o.began > min(proved)}
        behind = [offset for offset, other in read if other in later]
        if not is_read and behind and _is_passed(operations, key, min(behind) - 1):
            return True
    return False


def _is_doubtful(op: Operation) -> bool:
    """Whether it may have polled records that the history does not contain."""
    is_unknown = op.kind in ("info", "none")
    return is_unknown and any(not any(polled.values()) for polled in op.polls)


def _is_subscribed(operations: Sequence[Operation], op: Operation) -> bool:
    fs = [
        other.f
        for other in operations
        if other.process == op.process
        and other.f in ("assign", "subscribe")
        and other.began < op.began
    ]
    return fs[-1:] == ["subscribe"]


def _follows_doubt(operations: Sequence[Operation], op: Operation, before: int) -> bool:
    """Whether a poll in doubt of the process began before this time, or one of another subscriber."""
    return any(
        _is_doubtful(other)
        and other.began < before
        and (
            other.process == op.process
            or (_is_subscribed(operations, op) and _is_subscribed(operations, other))
        )
        for other in operations
    )


def _is_passed(operations: Sequence[Operation], key: str, offset: int) -> bool:
    """Whether a consumer read behind an offset, of which no poll in doubt may have returned what is there."""
    return any(
        any(read > offset for read, _ in _read(op, key))
        and not _follows_doubt(operations, op, op.ended)
        for op in operations
    )


def _given(operations: Sequence[Operation], process: int, key: str) -> list[list[int]]:
    """The offsets that a consumer was given, in stretches in which it reads on."""
    stretches: list[list[int]] = [[]]
    is_subscribed = False
    for op in operations:
        if op.process != process:
            continue
        if op.f in ("assign", "subscribe"):
            if is_subscribed or op.f == "subscribe" or key not in op.keys:
                stretches.append([])
            is_subscribed = op.f == "subscribe"
        elif op.polls and not op.is_ok:
            stretches.append([])
        elif op.polls:
            stretches[-1] += [offset for offset, _ in _read(op, key)]
            if is_subscribed:
                stretches.append([])
    return stretches


def _is_read_to_end(
    operations: Sequence[Operation], key: str, since: int, last: int, *, is_placed: bool = False
) -> bool:
    """Whether a poll that began later returned the last record, and its consumer's next poll nothing.

    Unless the record ``is_placed`` behind the last one, a poll in doubt before may have returned it.
    """
    for process in CLIENTS:
        reached = False
        keys: tuple[str, ...] = ()
        for op in (op for op in operations if op.process == process):
            if op.f in ("assign", "subscribe"):
                kept = op.f == "assign" and key in op.keys and key in keys
                reached = reached and kept
                keys = op.keys if op.f == "assign" else ()
            elif op.polls and not op.is_ok:
                reached = False
            elif op.polls and last in [offset for offset, _ in _read(op, key)]:
                reached = op.began > since and last >= 0
                reached &= is_placed or not _follows_doubt(operations, op, op.began)
            elif op.polls and _read(op, key):
                reached = False
            elif reached and key in keys and op.polls and not any(_read(op, k) for k in KEYS):
                return True
    return False


def _of_transactions(operations: Sequence[Operation]) -> set[str]:
    """G1c: transactions that polled each other's records, in a circle, or in one with real time."""
    sender = {
        (key, value): number
        for number, op in enumerate(operations)
        for key, value, _ in op.sends
        if op.kind != "fail"
    }
    graph: nx.DiGraph[int] = nx.DiGraph()
    names = set()
    for number, op in enumerate(operations):
        for other, later in enumerate(operations):
            if op.is_ok and op.ended < later.began:
                graph.add_edge(number, other)
        if op.kind == "fail":
            continue
        for key in KEYS:
            for _, value in _read(op, key):
                source = sender.get((key, value))
                if source == number:
                    names.add("precommitted-read")
                elif source is not None:
                    graph.add_edge(source, number)
    if not nx.is_directed_acyclic_graph(graph):
        names.add("G1c")
    return names
