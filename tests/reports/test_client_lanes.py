"""Clients around a finding: a bar from call to return, the proof framed, the farthest left out."""

from __future__ import annotations

from itertools import count

import pytest

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of
from nemesis.reports.client_lanes import (
    AROUND_NS,
    LONGEST_NS,
    MAX_LANES,
    MAX_OPERATIONS,
    OPEN_COLOUR,
    ClientLanes,
    client_lanes,
)
from nemesis.reports.diagram.gather import ProofTimes, ZxidClock
from nemesis.reports.figures import OUTCOME_COLOURS
from nemesis.reports.lanes import Bar

SECOND = 1_000_000_000
PARTITION = {"topic": "orders", "partition": 0}
_numbers = count()


def event(at_s: float, process: str, kind: Kind, **columns: object) -> Event:
    fields = {"seq": next(_numbers), **PARTITION, **columns}
    return Event(time=round(at_s * SECOND), process=process, kind=kind.value, **fields)  # type: ignore[arg-type]


def send(
    process: str,
    op: int,
    begin_s: float,
    end_s: float | None,
    kind: Kind = Kind.OK,
    **columns: object,
) -> list[Event]:
    about = {"op": op, "f": "send", "value": op, **columns}
    call = event(begin_s, process, Kind.INVOKE, **about)
    return [call] if end_s is None else [call, event(end_s, process, kind, **about)]


def lanes(events: list[Event], *proof: Event) -> ClientLanes | None:
    """The lanes around a finding that these events prove."""
    plain = tuple(
        {
            name: value
            for name in each.__struct_fields__
            if (value := getattr(each, name)) is not None
        }
        for each in proof
    )
    finding = Finding(property="p", verdict=Verdict.INVALID, key="k", sentence="s", events=plain)
    return client_lanes(history_of(events), ProofTimes.of(finding, ZxidClock([]), {}), 0)


def shown(drawn: ClientLanes | None) -> dict[str, list[Bar]]:
    assert drawn is not None
    return {lane.name: list(lane.bars) for lane in drawn.lanes}


def test_a_bar_lasts_from_the_call_to_the_return_in_the_colour_of_its_outcome() -> None:
    ok, fail = send("producer-0", 1, 10.0, 10.5), send("producer-1", 2, 10.2, 10.4, Kind.FAIL)
    info, lost = send("producer-2", 3, 10.1, 10.6, Kind.INFO), send("producer-3", 4, 10.3, None)
    drawn = lanes([*ok, *fail, *info, *lost], ok[1])
    bars = {name: bar for name, (bar,) in shown(drawn).items()}
    assert [bars[f"producer-{n}"].shade for n in range(4)] == [
        *(OUTCOME_COLOURS[outcome] for outcome in ("ok", "fail", "info")),
        OPEN_COLOUR,
    ]
    assert bars["producer-0"].stop_s - bars["producer-0"].start_s == pytest.approx(0.5)
    assert bars["producer-1"].start_s - bars["producer-0"].start_s == pytest.approx(0.2)
    assert drawn is not None
    assert bars["producer-3"].stop_s == drawn.duration_s
    assert "no return" in bars["producer-3"].title


def test_operations_of_the_proof_are_framed_and_its_times_are_marked() -> None:
    proof, other = send("producer-0", 1, 10.0, 10.5), send("producer-1", 2, 10.2, 10.4)
    drawn = lanes([*proof, *other], proof[1])
    assert [bar.look for (bar,) in shown(drawn).values()] == ["call proof", "call"]
    assert drawn is not None
    ((bar,), _) = shown(drawn).values()
    assert list(drawn.proof_s) == [pytest.approx(bar.stop_s)]


def test_only_operations_of_the_partition_and_of_the_time_of_the_proof_are_shown() -> None:
    proof = send("producer-0", 1, 10.0, 10.5)
    foreign = send("producer-1", 2, 10.0, 10.5, topic="other")
    early = send("producer-2", 3, 8.0, 9.4)
    running = send("producer-3", 4, 5.0, 15.0)
    drawn = lanes([*proof, *foreign, *early, *running], proof[1])
    assert list(shown(drawn)) == ["producer-0", "producer-3"]
    assert drawn is not None
    assert drawn.subject == "orders-0"
    assert early[1].time < proof[1].time - AROUND_NS


def test_the_bars_of_a_finding_about_several_partitions_name_them() -> None:
    first, second = send("producer-0", 1, 10.0, 10.5), send("producer-0", 2, 11, 11.2, partition=1)
    drawn = lanes([*first, *second], first[1], second[1])
    assert [bar.text for bar in shown(drawn)["producer-0"]] == [
        "send orders-0 1",
        "send orders-1 2",
    ]
    assert drawn is not None
    assert drawn.subject == ""


def test_what_does_not_fit_is_counted_and_is_the_farthest() -> None:
    proof = send("producer-0", 0, 10.0, 10.0)
    near = [
        each for n in range(1, 101) for each in send("producer-0", n, 10 + n / 200, 10 + n / 200)
    ]
    drawn = lanes([*proof, *near], proof[1])
    assert drawn is not None
    bars = shown(drawn)["producer-0"]
    assert drawn.left_out == 101 - MAX_OPERATIONS == 101 - len(bars)
    assert {bar.text for bar in bars} == {f"send {n}" for n in range(MAX_OPERATIONS)}


def test_no_more_clients_than_there_is_room_for() -> None:
    many = [each for n in range(2 * MAX_LANES) for each in send(f"producer-{n:02}", n, 10, 10.1)]
    drawn = lanes(many, many[1])
    assert drawn is not None
    assert len(drawn.lanes) == MAX_LANES == drawn.left_out


def test_operations_with_equal_numbers_belong_to_their_processes() -> None:
    first, second = send("producer-0", 1, 10.0, 10.5), send("producer-1", 1, 10.1, None)
    bars = shown(lanes([*first, *second], first[1]))
    assert bars["producer-0"][0].shade == OUTCOME_COLOURS["ok"]
    assert bars["producer-1"][0].shade == OPEN_COLOUR


def test_without_a_time_or_a_client_nothing_is_drawn() -> None:
    broker = event(10.0, "broker-1", Kind.HIGH_WATERMARK)
    assert lanes([broker], broker) is None
    assert lanes(send("producer-0", 1, 10, 10.5)) is None
    late = send("producer-0", 1, 10.1 + LONGEST_NS / SECOND, None)
    assert lanes([broker, *late], broker) is None
