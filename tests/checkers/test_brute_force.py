"""Checks against definitions written down again, as loops over all pairs: tiny random histories, right and wrong ones.

Nothing here is shared with the checks but the events. A thousand histories of each in a few seconds; ``make nightly``
takes 10,000. Objects and transactions have theirs in ``linearizable`` and ``cycles``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.breaks import events as making
from nemesis.checkers.framework.model import Verdict
from nemesis.history.events import Event
from tests.checkers.histories import judge

FEW, MANY, BLOCK = 200, 10_000, 500
NODES = (1, 2, 3)
VALID, UNKNOWN, INVALID = Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID

Verdicts = dict[str, Verdict]


class Subject(NamedTuple):
    make: Callable[[Random], list[Event]]
    decide: Callable[[list[Event]], Verdicts]


def _replica_events(rng: Random) -> Iterator[Event]:
    """Logs that end anywhere, high watermarks that may be anything, brokers that may be silent."""
    speaking = rng.sample(NODES, rng.randint(1, 3))
    for time in range(1, rng.randint(3, 12)):
        node, end = rng.choice(speaking), rng.randrange(4)
        kind = rng.randrange(8)
        if kind < 3:
            yield making.append(time, node, rng.randrange(2), end, crc=rng.randrange(2))
        elif kind == 3:
            yield making.truncate(time, node, end)
        elif kind == 4:
            yield making.loaded(time, node, end)
        else:
            isr = rng.sample(NODES, rng.randint(1, 3))
            yield making.high_watermark(time, node, 0, end, isr, log_end_offset=rng.randrange(4))


def hw_bounded(events: list[Event]) -> Verdicts:
    collected = []
    spoke = {event.node for event in events}
    for index, mark in enumerate(events):
        if mark.kind != "high-watermark":
            continue
        for member in mark.maximal_isr or ():
            before = [e for e in events[:index] if e.node == member and e.kind != "high-watermark"]
            reported = mark.log_end_offset if member == mark.node else None
            if reported is None and before:
                reported = before[-1].log_end_offset
            if (mark.high_watermark or 0) > (reported or 0):
                collected.append(INVALID if reported is not None or member in spoke else UNKNOWN)
    marks = any(event.kind == "high-watermark" for event in events)
    return {"hw-bounded": _worst(collected, is_checked=marks)}


def _batches(rng: Random) -> Iterator[Event]:
    for time in range(1, rng.randint(3, 7)):
        offset = rng.randrange(4)
        last = offset + rng.choice((0, 0, 0, 1))
        crc = 1 if rng.random() < 0.1 else 10 * offset + last
        yield making.append(time, rng.choice(NODES), rng.randrange(3), offset, last=last, crc=crc)


def log_matching(events: list[Event]) -> Verdicts:
    """Of replicas that nobody leads: batches of one leader epoch are the same, or apart."""
    collected = []
    for first, other in combinations(events, 2):
        positions = [(e.offset or 0, e.last_offset or 0) for e in (first, other)]
        meets = positions[0][0] <= positions[1][1] and positions[1][0] <= positions[0][1]
        is_same = positions[0] == positions[1] and first.crc == other.crc
        if first.leader_epoch == other.leader_epoch and meets and not is_same:
            collected.append(INVALID)
    return {"log-matching": _worst(collected, is_checked=bool(events))}


def _client_events(rng: Random) -> Iterator[Event]:
    time = 0
    end, positions = 0, {"consumer-0": 0, "consumer-1": 0}
    log: dict[int, int] = {}
    for value in range(1, rng.randint(3, 9)):
        time += 2
        if rng.random() < 0.5:
            outcome = rng.choices(["ok", "info", "fail"], [6, 1, 1])[0]
            about: dict[str, Any] = {
                "process": f"producer-{rng.randrange(2)}",
                "acks": rng.choice((-1, -1, -1, 1)),
            }
            if outcome != "fail" or rng.random() < 0.2:
                offset = rng.randrange(end + 1) if rng.random() < 0.2 else end
                log[offset], end = value, max(end, offset + 1)
            if outcome == "ok":
                yield from making.send(time, value, offset=offset, **about)
            else:
                yield from making.send(time, value, outcome, **about)
            continue
        process = rng.choice(sorted(positions))
        start = positions[process] if rng.random() < 0.8 else rng.randrange(end + 1)
        read = {
            index: log[index] for index in range(start, end) if index in log and rng.random() < 0.9
        }
        yield from making.poll(time, start, read, process=process)
        positions[process] = max([start - 1, *read]) + 1


def client_log(events: list[Event]) -> Verdicts:
    """Of one life of a topic, without final reads and traces."""
    sends = [e for e in events if e.f == "send" and e.kind != "invoke"]
    polls = [e for e in events if e.f == "poll" and e.kind == "ok"]
    acknowledged = [e for e in sends if e.kind == "ok" and e.acks == -1]
    read = [pair for p in polls for pair in zip(p.offsets or (), p.values or (), strict=True)]
    values = {value for _, value in read}
    pairs = {(e.offset, e.value) for e in acknowledged} | set(read)
    failed = {e.value for e in sends if e.kind == "fail"}
    spans = [(p.offset or 0, max(p.offsets or [-1])) for p in polls]

    lost = [
        INVALID for index, value in pairs if value not in values and _covered(index or 0, spans)
    ]
    torn = [INVALID for (a, x), (b, y) in combinations(pairs, 2) if a == b and x != y]
    twice = [VALID for (a, x), (b, y) in combinations(pairs, 2) if a != b and x == y]
    dirty = [INVALID for value in values if value in failed]
    not_rising = [
        INVALID
        for first, other in combinations(acknowledged, 2)
        if first.process == other.process and (other.offset or 0) <= (first.offset or 0)
    ]
    skipped, repeated = [], []
    for process in {poll.process for poll in polls}:
        expected = None
        for poll in (poll for poll in polls if poll.process == process):
            position = poll.offset or 0
            steps = [position, *(poll.offsets or ())]
            for number, step in enumerate(steps):
                due = (
                    expected if number == 0 else max(steps[0], *(s + 1 for s in steps[1:number]), 0)
                )
                if due is not None and step > due:
                    skipped.append(INVALID)
                if due is not None and step < due:
                    repeated.append(INVALID)
            expected = max([position - 1, *(poll.offsets or ())]) + 1
    return {
        "lost-write": _worst(lost, is_checked=bool(pairs)),
        "inconsistent-offset": _worst(torn, is_checked=bool(pairs)),
        "duplicate": _worst(twice, is_checked=bool(pairs)),
        "dirty-read": _worst(dirty, is_checked=bool(values)),
        "nonmonotonic-send": _worst(not_rising, is_checked=bool(acknowledged)),
        "poll-skip": _worst(skipped, is_checked=bool(polls)),
        "nonmonotonic-poll": _worst(repeated, is_checked=bool(polls)),
    }


def _covered(offset: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= offset <= last for start, last in spans)


def _worst(verdicts: list[Verdict], *, is_checked: bool) -> Verdict:
    for verdict in (INVALID, UNKNOWN):
        if verdict in verdicts:
            return verdict
    return VALID if verdicts or is_checked else UNKNOWN


SUBJECTS = {
    "hw-bounded": Subject(lambda rng: list(_replica_events(rng)), hw_bounded),
    "log-matching": Subject(lambda rng: list(_batches(rng)), log_matching),
    "client-log": Subject(lambda rng: list(_client_events(rng)), client_log),
}


def disagreements(name: str, numbers: range) -> list[str]:
    subject, result = SUBJECTS[name], []
    for number in numbers:
        rng = Random(f"{name} {number}")
        events = subject.make(rng)
        expected = subject.decide(events)
        check = CHECKERS[next(iter(expected))].check()
        results = judge(check, events, [rng.randrange(100) for _ in range(rng.randrange(3))])
        result += [
            f"{number}: {item} is {results[item].verdict}, by the definition {verdict}"
            for item, verdict in expected.items()
            if results[item].verdict != verdict
        ]
    return result


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_check_says_what_the_definition_says(name: str) -> None:
    assert disagreements(name, range(FEW)) == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("start", range(FEW, MANY, BLOCK))
@pytest.mark.parametrize("name", SUBJECTS)
def test_ten_thousand_times(name: str, start: int) -> None:
    assert disagreements(name, range(start, min(start + BLOCK, MANY))) == []


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_histories_are_right_and_wrong_in_turn(name: str) -> None:
    subject = SUBJECTS[name]
    said: dict[str, set[Verdict]] = {}
    for number in range(FEW):
        for item, verdict in subject.decide(subject.make(Random(f"{name} {number}"))).items():
            said.setdefault(item, set()).add(verdict)
    for item, verdicts in said.items():
        assert verdicts >= ({VALID} if item == "duplicate" else {VALID, INVALID}), item
