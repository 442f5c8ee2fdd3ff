"""One way to write times, sessions and zxids."""

from __future__ import annotations

from nemesis.reports.diagram.gather import ZxidClock
from nemesis.reports.values import Values

SESSION = 0x100000100000000
VALUES = Values(2_000_000_000, {SESSION: "broker-2"}, ZxidClock([(0x100000005, 3_500_000_000)]))


def test_times_count_from_the_first_event_of_the_run() -> None:
    assert (
        VALUES.when({"time": 3_000_000_000, "process": "broker-1", "kind": "append"}) == "1.000000"
    )


def test_an_event_of_zookeeper_happened_before_the_first_trace_of_it() -> None:
    znode = {"time": -1, "process": "zookeeper", "kind": "znode", "zxid": 0x100000004}
    assert VALUES.when(znode) == "≤ 1.500000"
    assert VALUES.when({**znode, "zxid": 0x100000006}) == "–"
    assert VALUES.when({}) == "–"


def test_sessions_are_hexadecimal_and_name_their_broker() -> None:
    event = {"time": 1, "process": "zookeeper", "kind": "znode", "zxid": 0x10A, "session": SESSION}
    assert VALUES.columns(event) == [("zxid", "0x10a"), ("session", "0x100000100000000 (broker-2)")]
    assert VALUES.columns({"session": 7}) == [("session", "0x7")]


def test_other_values_are_written_as_ever() -> None:
    assert VALUES.columns({"isr": [1, 2], "leader_epoch": 12}) == [
        ("isr", "[1, 2]"),
        ("leader_epoch", "12"),
    ]
