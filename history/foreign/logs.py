"""Logs with offsets, as the kafka workload of jepsen.tests has them: keys, each a log; sends and polls of them.

An operation (``send``, ``poll`` or ``txn``) is a vector of micro-operations: ``[:send k v]``, which returns
``[:send k [offset v]]``, and ``[:poll]``, which returns ``[:poll {k [[offset v] …]}]``. Each send, and each poll of
each key, is an operation of ours on partition 0 of the topic that the key names. ``part_of`` says what it was part of:
``txn#2``, the micro-operation 2 of a transaction; all parts have the times of the whole. A successful poll that
returned nothing is one of each key that is assigned.

A consumer reads on from where it was, unless it is assigned other keys or seeks. The events contain no assignments: a
consumer that is assigned a key again goes on as another consumer, ``3/1`` after ``3``. Under ``subscribe`` keys may
come and go at any time, so each poll is another consumer's. So is what follows a poll that failed or whose end is
unknown, and what a process has under way beside another operation, because these two have no order.

A send asks for all replicas, and a value stands in its log once: that is what the workload expects.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from nemesis.history.events import IDEMPOTENT
from nemesis.history.foreign.edn import Keyword, is_vector, same
from nemesis.history.foreign.names import FIRST_NAME, INTEGER, Names, value_of, word_of
from nemesis.history.foreign.operations import FAIL, INFO, INVOKE, OK, SEEKS, Operation
from nemesis.history.foreign.pairs import Pair
from nemesis.history.foreign.problems import Damage, Problems
from nemesis.history.foreign.vocabulary import (
    Columns,
    Part,
    Vocabulary,
    WrongValue,
    aside,
    event,
    is_aside,
    keyed,
    operation,
    operation_aside,
)

DATA: Final = frozenset({"send", "poll", "txn"})
ASSIGNMENTS: Final = frozenset({"assign", "subscribe"})
ALL_REPLICAS: Final = -1
CRASH: Final = "crash"
"""Its client ends, and the next one of its process, if any, begins with another consumer."""
SUBSCRIBERS: Final = "subscribers"
"""The group of all consumers that subscribe: the history does not state which groups there are."""
SEND: Final = "send"
POLL: Final = "poll"


@dataclass(frozen=True, slots=True)
class Send:
    key: Any
    value: Any
    offset: int | None = None
    written: Any = None
    """What the micro-operation has: the value, or its offset and the value."""

    def as_invoked(self) -> Send:
        """Return the send of an invocation, which states no offset: a vector of two is its value."""
        return Send(self.key, self.written, None, self.written)

    def answering(self, asked: Send) -> Send:
        """Return the answer; one that repeats the request states no offset either."""
        return self.as_invoked() if same(self.written, asked.written) else self


@dataclass(frozen=True, slots=True)
class Poll:
    records: tuple[tuple[Any, tuple[tuple[int, Any], ...]], ...] = ()
    """Keys, and (offset, value) of each record; no key without a record."""


Micro = Send | Poll


@dataclass(frozen=True, slots=True)
class _MicroPart:
    f: str
    process: str
    where: Columns
    """The log, if it is of one."""
    sent: Columns
    """What the invocation says beside it, and what the completion."""
    got: Columns


class Logs(Vocabulary):
    functions = DATA | ASSIGNMENTS | {CRASH, "debug-topic-partitions"}

    def __init__(self) -> None:
        self._consumers: defaultdict[int | str, _Consumer] = defaultdict(_Consumer)
        self._overlapping: Counter[int | str] = Counter()
        """By process, how many of its operations it had under way beside others."""

    def parts(self, pair: Pair, names: Names, problems: Problems) -> list[Part]:
        invoke, completion = pair.invoke, pair.completion
        if invoke.f in ASSIGNMENTS and completion is not None and completion.type != FAIL:
            may_seek = any(map(_may_seek, (invoke, completion)))
            self._consumers[invoke.process].assign(completion, may_seek=may_seek)
        if invoke.f == CRASH and not (completion is not None and completion.type == FAIL):
            self._consumers[invoke.process].crash()
        asked = _micros(invoke.value) if invoke.f in DATA else ()
        if isinstance(asked, WrongValue):
            problems.note(Damage.WRONG_VALUE, invoke.line, str(asked))
            asked = ()
        if not asked:
            return [Part(aside(invoke), None if completion is None else aside(completion))]
        kind = INFO if completion is None else completion.type
        answered = _micros(None if completion is None else completion.value)
        if isinstance(answered, WrongValue) or [*map(type, answered)] != [*map(type, asked)]:
            if completion is not None and kind == OK:
                reason = (
                    str(answered) if isinstance(answered, WrongValue) else "not what was invoked"
                )
                problems.note(Damage.WRONG_VALUE, completion.line, reason)
                kind = INFO
            answered = tuple(Poll() if isinstance(micro, Poll) else micro for micro in asked)
        if completion is None or completion.line != invoke.line:
            asked, answered = _as_invoked(asked), _answering(answered, asked)
        if kind != OK and any(isinstance(micro, Poll) for micro in asked):
            self._consumers[invoke.process].forget_position()
        if not pair.is_alone:
            self._overlapping[invoke.process] += 1
            self._consumers[invoke.process].forget_position()
        parts = self._parts_of(pair, asked, answered, kind, names)
        if not pair.is_alone:
            self._consumers[invoke.process].forget_position()
        return parts

    def _parts_of(
        self, pair: Pair, asked: Sequence[Micro], answered: Sequence[Micro], kind: str, names: Names
    ) -> list[Part]:
        """Return the parts of an operation whose request and answer are known."""
        invoke, completion = pair.invoke, pair.completion
        producer = word_of(invoke.process)
        if not pair.is_alone:
            producer += f"/{self._overlapping[invoke.process]}"
        parts = []
        for index, (request, answer) in enumerate(zip(asked, answered, strict=True)):
            micro_parts = [*self._micro_parts(invoke.process, producer, request, answer, names)]
            if not micro_parts:
                is_reading_on = kind == OK and pair.is_alone
                micro_parts = self._empty_polls(invoke.process, is_reading_on=is_reading_on)
            for micro in micro_parts:
                where = {**micro.where, "part_of": f"{invoke.f}#{index}"}
                sent = event(invoke, micro.f, {**where, **micro.sent}, process=micro.process)
                got = {**where, **micro.got}
                done = None
                if completion is not None:
                    done = event(completion, micro.f, got, kind, micro.process)
                parts.append(Part(sent, done))
        return parts

    def _micro_parts(
        self, process: int | str, producer: str, asked: Micro, answered: Micro, names: Names
    ) -> Iterator[_MicroPart]:
        word = word_of(process)
        if isinstance(asked, Send):
            value = {"value": names.number(asked.value)}
            sent = {**value, "acks": ALL_REPLICAS, "delivery": IDEMPOTENT}
            offset = answered.offset if isinstance(answered, Send) else None
            answer = {} if offset is None else {"offset": offset}
            yield _MicroPart(SEND, producer, _log(asked.key), sent, {**value, **answer})
        elif isinstance(answered, Poll) and answered.records:
            consumer = self._consumers[process]
            for key, records in answered.records:
                got: Columns = {
                    "offsets": [offset for offset, _ in records],
                    "values": [names.number(value) for _, value in records],
                }
                name = consumer.name(word, _topic(key))
                yield _MicroPart(POLL, name, {**_log(key), **consumer.group}, {}, got)

    def _empty_polls(self, process: int | str, *, is_reading_on: bool) -> list[_MicroPart]:
        """Return the parts of a poll without a record: one of each assigned key, if it is known where it reads on."""
        consumer, word = self._consumers[process], word_of(process)
        assigned = consumer.assigned if is_reading_on else ()
        got: Columns = {"offsets": [], "values": []}
        parts = [
            _MicroPart(POLL, consumer.name(word, _topic(key)), _log(key), {}, got)
            for key in assigned
        ]
        return parts or [_MicroPart(POLL, word, consumer.group, {}, {})]

    def operations(self, events: Iterable[Mapping[str, Any]], names: Names) -> Iterable[Operation]:
        line = 0
        for _, group in groupby(events, _operation_key):
            parts = list(group)
            line += 1
            if is_aside(parts[0]) or "op" not in parts[0]:
                yield operation_aside(parts[0], line)
                continue
            parts.sort(key=lambda part: part["op"])
            f = parts[0]["part_of"].split("#")[0]
            micros = [
                _written([*same], names) for _, same in groupby(parts, lambda part: part["part_of"])
            ]
            said = {**parts[0], "process": process_of(parts[0]["process"])}
            yield operation(said, line, f, tuple(micros))


@dataclass
class _Consumer:
    """The state of a consumer that decides whether it reads on or starts again."""

    restarts: Counter[str] = field(default_factory=Counter)
    """By topic, how often the consumer may have started again there."""
    is_subscribed: bool = False
    assigned: tuple[Any, ...] = ()
    """The keys that it reads; none if a group assigns them."""

    @property
    def group(self) -> Columns:
        """The column that names its group, if it has one."""
        return {"group": SUBSCRIBERS} if self.is_subscribed else {}

    def assign(self, completion: Operation, *, may_seek: bool) -> None:
        """Take note of what it is assigned from now on; ``may_seek``: it may read from the beginning."""
        was_subscribed, self.is_subscribed = self.is_subscribed, completion.f == "subscribe"
        keys = completion.value if is_vector(completion.value) else ()
        self.assigned = () if self.is_subscribed else tuple(dict.fromkeys(keys))
        kept = {_topic(key) for key in keys}
        if was_subscribed or self.is_subscribed or may_seek:
            kept = set()
        for topic in self.restarts:
            self.restarts[topic] += topic not in kept

    def crash(self) -> None:
        """Take note that another consumer takes its place, which is assigned nothing."""
        self.forget_position()
        self.is_subscribed, self.assigned = False, ()

    def forget_position(self) -> None:
        """Take note that nobody knows how far its last poll came."""
        for topic in self.restarts:
            self.restarts[topic] += 1

    def name(self, process: str, topic: str) -> str:
        """Return what it is called when it polls a topic."""
        self.restarts[topic] += self.is_subscribed
        times = self.restarts[topic]
        return f"{process}/{times}" if times else process


def _may_seek(operation: Operation) -> bool:
    """Whether an assignment may make its consumer read from the beginning again."""
    entries = operation.other or {}
    return SEEKS in entries and entries[SEEKS] is not False


def _operation_key(part: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what all parts of one operation share, and no other's."""
    return part["time"], part["kind"], process_of(part["process"])


def process_of(process: str) -> str:
    """Return the process that a consumer belongs to."""
    before, slash, times = process.rpartition("/")
    return before if slash and times.isdecimal() else process


def _topic(key: Any) -> str:
    """Return the topic of a key. JSON has no keys of maps but strings: one that says a number is that number."""
    is_number = isinstance(key, str) and INTEGER.fullmatch(key)
    return str(key) if is_number else word_of(key)


def _log(key: Any) -> Columns:
    return {"topic": _topic(key), "partition": 0}


def _as_invoked(asked: Sequence[Micro]) -> tuple[Micro, ...]:
    """Return the micro-operations of an invocation that is in the file."""
    return tuple(micro.as_invoked() if isinstance(micro, Send) else micro for micro in asked)


def _answering(answered: Sequence[Micro], asked: Sequence[Micro]) -> tuple[Micro, ...]:
    """Return the micro-operations of the answer to an invocation that is in the file."""
    return tuple(
        answer.answering(request)
        if isinstance(answer, Send) and isinstance(request, Send)
        else answer
        for answer, request in zip(answered, asked, strict=True)
    )


def _micros(value: Any) -> tuple[Micro, ...] | WrongValue:
    """Return the micro-operations of a value."""
    if not is_vector(value):
        return WrongValue("no vector of micro-operations")
    try:
        return tuple(map(_micro, value))
    except WrongValue as error:
        return error


def _micro(micro: Any) -> Micro:
    if not is_vector(micro) or not micro:
        raise WrongValue("a micro-operation is no vector")
    if micro[0] == SEND and len(micro) == 3 and micro[1] is not None:
        stored = keyed(micro[2])
        if stored is not None and (stored[0] is None or _is_offset(stored[0])):
            return Send(micro[1], stored[1], stored[0], micro[2])
        return Send(micro[1], micro[2], None, micro[2])
    if micro[0] == POLL and len(micro) <= 2:
        polled = micro[1] if len(micro) == 2 and micro[1] is not None else {}
        if not isinstance(polled, dict) or not all(map(is_vector, polled.values())):
            raise WrongValue("a poll did not return a map of keys to records")
        records = {key: tuple(map(_record, entries)) for key, entries in polled.items() if entries}
        return Poll(tuple(records.items()))
    raise WrongValue("a micro-operation is neither [:send k v] nor [:poll]")


def _record(record: Any) -> tuple[int, Any]:
    stored = keyed(record)
    if stored is None or not _is_offset(stored[0]):
        raise WrongValue("a record is not [offset value]")
    return stored


def _is_offset(offset: Any) -> bool:
    return type(offset) is int and 0 <= offset < FIRST_NAME


def _written(parts: list[Mapping[str, Any]], names: Names) -> tuple[Any, ...]:
    """Return a micro-operation as it is written."""
    first = parts[0]
    is_invoke = first["kind"] == INVOKE
    if first["f"] == POLL:
        records = {
            value_of(part["topic"]): tuple(
                zip(part["offsets"], map(names.value, part["values"]), strict=True)
            )
            for part in parts
            if part.get("offsets")
        }
        return (Keyword(POLL),) if is_invoke else (Keyword(POLL), records)
    value = names.value(first["value"])
    stored = value if first.get("offset") is None else (first["offset"], value)
    return (Keyword(SEND), value_of(first["topic"]), stored)
