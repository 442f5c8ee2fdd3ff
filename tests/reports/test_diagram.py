"""The message diagram: what belongs together is joined, what matters is drawn, the proof is marked."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import msgspec
import pytest

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of
from nemesis.history.reader import History
from nemesis.reports.diagram import message_diagram
from nemesis.reports.diagram.compose import compose
from nemesis.reports.diagram.gather import ProofTimes, ZxidClock, gather, session_owners
from nemesis.reports.diagram.items import CLIENTS, ZOOKEEPER, Item, Rank
from nemesis.reports.diagram.say import MAX_CHARACTERS, say
from nemesis.reports.diagram.select import MAX_ROWS, select
from nemesis.reports.diagram.svg import ROW_PX

SECOND = 1_000_000_000
MS = 1_000_000
TP = {"topic": "orders", "partition": 0}
_seq = iter(range(10_000_000))


def event(at_s: float, process: str, kind: Kind, **columns: object) -> Event:
    node = int(process[-1]) if process.startswith("broker-") else None
    fields = {"node": node, "seq": next(_seq), **columns}
    return Event(time=round(at_s * SECOND), process=process, kind=kind.value, **fields)  # type: ignore[arg-type]


def znode(zxid: int, **columns: object) -> Event:
    return Event(time=-1, process="zookeeper", kind=Kind.ZNODE.value, zxid=zxid, **columns)  # type: ignore[arg-type]


def sent(at_s: float, peer: int, epoch: int = 1, **columns: object) -> Event:
    about = {"api": "LeaderAndIsr", "peer": peer, "controller_epoch": epoch, **columns}
    return event(at_s, "broker-1", Kind.CONTROL_REQUEST_SENT, **about)


def handled(at_s: float, node: int, epoch: int = 1, error: str = "NONE") -> Event:
    about = {"api": "LeaderAndIsr", "peer": 1, "controller_epoch": epoch, "error": error}
    return event(at_s, f"broker-{node}", Kind.CONTROL_REQUEST_HANDLED, **about)


def finding(*proof: Event) -> Finding:
    plain = tuple(
        {
            name: value
            for name in event.__struct_fields__
            if (value := getattr(event, name)) is not None
        }
        for event in proof
    )
    return Finding(
        property="p", verdict=Verdict.INVALID, key="k", sentence="It is broken.", events=plain
    )


def composed(events: list[Event], *proof: Event) -> list[Item]:
    history = history_of(events)
    instants = ProofTimes.of(finding(*proof), ZxidClock.of(history), session_owners(history))
    items, _ = compose(gather(history, instants), instants)
    return items


def diagram(history: History, *proof: Event, origin_ns: int = 0) -> str | None:
    instants = ProofTimes.of(finding(*proof), ZxidClock.of(history), session_owners(history))
    return message_diagram(history, instants, origin_ns)


def messages(items: list[Item]) -> list[tuple[list[str], list[str]]]:
    """Columns and words of what has more than one stop."""
    return [
        ([stop.column for stop in item.stops], [stop.text for stop in item.stops if stop.text])
        for item in items
        if len(item.stops) > 1
    ]


def test_a_control_request_is_joined_with_where_it_was_handled_however_late() -> None:
    late = handled(9.0, 3)
    events = [sent(4.0, 2), sent(4.1, 3), handled(4.2, 2), late]
    assert messages(composed(events, late)) == [
        (["broker-1", "broker-2"], ["LeaderAndIsr epoch 1", "accepts epoch 1"]),
        (["broker-1", "broker-3"], ["LeaderAndIsr epoch 1", "accepts epoch 1"]),
    ]


def test_of_equal_requests_the_first_sent_is_the_first_handled() -> None:
    last = handled(5.3, 2, error="STALE_CONTROLLER_EPOCH")
    items = composed([sent(5.0, 2), sent(5.1, 2), handled(5.2, 2), last], last)
    ends = [(item.stops[0].time // MS, item.stops[1].time // MS) for item in items]
    assert ends == [(5_000, 5_200), (5_100, 5_300)]


def test_a_request_that_was_not_handled_is_lost_unless_it_may_still_be_on_its_way() -> None:
    proof = handled(5.0, 3)
    items = composed([sent(4.0, 2), sent(4.1, 3), proof, sent(5.2, 2)], proof)
    assert [item.lost_to for item in items] == ["broker-2", None]


def test_a_write_goes_to_zookeeper_and_back() -> None:
    path = "/brokers/topics/orders/partitions/0/state"
    attempt = event(5.0, "broker-1", Kind.ZNODE_ATTEMPT, path=path, controller_epoch=1)
    outcome = event(
        5.1, "broker-1", Kind.ZNODE_OUTCOME, path=path, controller_epoch=1, error="NONE", zxid=7
    )
    written = znode(7, path=path, zk_op="setData", leader=2, leader_epoch=3, isr=[2], **TP)
    (item,) = composed([attempt, outcome, written], written)
    assert [stop.column for stop in item.stops] == ["broker-1", ZOOKEEPER, "broker-1"]
    assert [stop.text for stop in item.stops] == ["write orders-0", "", "committed, zxid 0x7"]
    assert item.rank is Rank.PROOF


def test_a_record_goes_from_the_client_through_the_leader_and_to_the_follower() -> None:
    about = {"op": 1, "f": "send", "value": 8, **TP}
    batch = {"offset": 4, "last_offset": 4, "leader_epoch": 2, **TP}
    acknowledged = event(5.3, "broker-1", Kind.PRODUCE_ACKNOWLEDGED, high_watermark=4, **batch)
    events = [
        event(5.0, "producer-0", Kind.INVOKE, **about),
        event(5.1, "broker-1", Kind.APPEND, role="leader", **batch),
        event(5.2, "broker-2", Kind.APPEND, role="follower", **batch),
        acknowledged,
        event(5.4, "producer-0", Kind.OK, **{**about, "offset": 4, "node": 1}),
    ]
    assert messages(composed(events, acknowledged)) == [
        (
            [CLIENTS, "broker-1", "broker-1", CLIENTS],
            ["producer-0: send 8", "appends 4, e2", "acknowledges 4, HW 4", "ok, offset 4"],
        ),
        (["broker-1", "broker-2"], ["appends 4, e2"]),
    ]


def test_zookeepers_events_are_put_where_their_zxids_were_first_traced() -> None:
    history = history_of(
        [
            event(5.0, "broker-1", Kind.CONTROLLER_ELECTED, zxid=10, controller_epoch=1),
            event(7.0, "broker-2", Kind.BROKER_REGISTERED, zxid=12, broker_epoch=12),
            event(6.0, "broker-3", Kind.BROKER_REGISTERED, zxid=13, broker_epoch=13),
        ]
    )
    clock = ZxidClock.of(history)
    assert clock.time(znode(9)) == 5 * SECOND - 1
    # What broker 2 traced late was committed before what broker 3 traced early.
    assert clock.time(znode(11)) == clock.time(znode(12)) == 6 * SECOND - 1
    assert clock.time(znode(14)) is None


def test_a_finding_whose_proof_has_no_time_has_no_diagram() -> None:
    history = history_of([event(1.0, "harness", Kind.PHASE, phase="end")])
    assert diagram(history, znode(3, path="/x")) is None


def test_what_proves_the_finding_is_drawn_whatever_it_is() -> None:
    odd = event(5.0, "harness", Kind.CONVERGENCE, check="leaders", error="too late")
    (item,) = composed([odd], odd)
    assert item.rank is Rank.PROOF
    assert item.stops[0].text == "convergence"


def _storm() -> list[Event]:
    """Far more than fits."""
    requests = [sent(3 + number / 50, 2 + number % 2, epoch=number) for number in range(150)]
    answers = [handled(3.001 + number / 50, 2 + number % 2, epoch=number) for number in range(150)]
    return [*requests, *answers]


def _selected(events: list[Event], *proof: Event):  # type: ignore[no-untyped-def]
    history = history_of(events)
    instants = ProofTimes.of(finding(*proof), ZxidClock.of(history), session_owners(history))
    return select(compose(gather(history, instants), instants), instants)


def test_what_does_not_fit_is_left_out_the_farthest_first() -> None:
    events = _storm()
    proof = events[-1]
    scene = _selected(events, proof)
    assert sum(item.rows for item in scene.items) <= MAX_ROWS
    assert scene.left_out > 100
    assert max(stop.time for item in scene.items for stop in item.stops) == proof.time
    starts = [item.start for item in scene.items]
    assert starts == sorted(starts)
    assert starts[0] > 5 * SECOND


def test_a_burst_is_drawn_once_with_its_number() -> None:
    proof = handled(5.5, 3)
    events = [sent(5.4, 3), proof]
    for number in range(6):
        events += [sent(5 + number / 1_000, 2), handled(5.0005 + number / 1_000, 2)]
    (burst, last) = _selected(events, proof).items
    assert (burst.count, last.count) == (6, 1)


def test_the_proof_is_never_part_of_a_burst() -> None:
    proof = handled(5.0025, 2)
    events = [proof, *(sent(5 + number / 1_000, 2) for number in range(3))]
    events += [handled(5.0005, 2), handled(5.0015, 2)]
    items = _selected(events, proof).items
    assert sorted((item.count, item.rank is Rank.PROOF) for item in items) == [
        (1, True),
        (2, False),
    ]


def test_faults_in_force_are_bars_and_those_long_over_are_not_told() -> None:
    proof = handled(50.0, 2)
    events = [sent(49.9, 2), proof]
    for number, (begin, end) in enumerate(((5.0, 10.0), (42.0, 60.0))):
        about = {"fault": "kill", "fault_id": number, "targets": ["broker-3"]}
        events += [
            event(begin, "nemesis", Kind.FAULT_APPLIED, **about, effect="measured"),
            event(end, "nemesis", Kind.FAULT_HEALED, **about, effect="verified"),
        ]
    scene = _selected(events, proof)
    (bar,) = scene.bars
    assert (bar.column, bar.start // SECOND) == ("broker-3", 42)
    assert [item.stops[0].text for item in scene.items if len(item.stops) == 1] == ["kill strikes"]
    assert scene.columns == ["broker-1", "broker-2", "broker-3"]


def drawn(events: list[Event], *proof: Event) -> ElementTree.Element:
    svg = diagram(history_of(events), *proof, origin_ns=SECOND)
    assert svg is not None
    return ElementTree.fromstring(svg)


def of_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in svg.iter() if name in element.attrib.get("class", "").split()]


def test_it_is_drawn_with_columns_times_gaps_and_the_proof_marked() -> None:
    proof = handled(9.0, 3, epoch=2)
    svg = drawn([sent(4.0, 3, epoch=2), sent(4.1, 2), handled(4.2, 2), proof], proof)
    assert [element.text for element in of_class(svg, "head")] == [
        "broker-1",
        "broker-2",
        "broker-3",
    ]
    assert [element.text for element in of_class(svg, "time")] == [
        "+4.800 s", "3.0000", "3.1000", "3.2000", "8.0000",
    ]  # fmt: skip
    assert len(of_class(svg, "proof")) == 1
    assert [element.text for element in of_class(svg, "strong")] == ["accepts epoch 2"]
    colours = {element.attrib["stroke"] for element in of_class(svg, "arrow")}
    assert len(colours) == 2


def test_no_two_labels_of_a_column_lie_on_one_another() -> None:
    events = _storm()
    svg = drawn(events, events[-1])
    positions: dict[str, list[float]] = {}
    for label in of_class(svg, "said"):
        positions.setdefault(label.attrib["x"], []).append(float(label.attrib["y"]))
    assert sum(map(len, positions.values())) > 40
    for heights in positions.values():
        ordered = sorted(heights)
        assert min(b - a for a, b in pairwise(ordered)) >= ROW_PX


def test_no_label_reaches_the_next_column() -> None:
    long = event(5.0, "broker-1", Kind.SESSION_STATE, session_state="x" * 100)
    svg = drawn([long, sent(5.1, 2), handled(5.2, 2)], long)
    lines = sorted(float(line.attrib["x1"]) for line in of_class(svg, "life"))
    for label in of_class(svg, "said"):
        begin = float(label.attrib["x"])
        end = begin + len(label.text or "") * 6.95  # the page's font, 11.5 px
        assert all(end < line for line in lines if line > begin)
        assert end < float(svg.attrib["width"])


def test_a_run_of_metadata_updates_is_drawn_once_whoever_gets_them() -> None:
    proof = handled(5.5, 3)
    events = [sent(5.4, 3), proof]
    for number in range(6):
        peer, at_s = 2 + number % 2, 5 + number / 1_000
        pair = (sent(at_s, peer), handled(at_s + 0.0005, peer))
        events += [msgspec.structs.replace(event, api="UpdateMetadata") for event in pair]
    (burst, last) = _selected(events, proof).items
    assert (burst.count, last.count) == (6, 1)


def test_names_from_the_history_are_escaped() -> None:
    evil = event(5.0, "broker-1", Kind.SESSION_STATE, session_state="<script>&")
    svg = diagram(history_of([evil]), evil)
    assert svg is not None
    assert "<script" not in svg
    assert "session &lt;script&gt;&amp;" in svg


LONG = dict.fromkeys(("session_state", "reason", "change", "step", "detail"), "x" * 100)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_event_can_be_said_in_a_row(kind: Kind) -> None:
    words = say(event(1.0, "broker-1", kind, **LONG, error="E" * 100))
    assert 0 < len(words) <= MAX_CHARACTERS
    assert not re.search(r"[<>]", words)
