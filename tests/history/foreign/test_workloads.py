"""What the operations of each workload become."""

from __future__ import annotations

import pytest

from nemesis.history.foreign.names import FIRST_NAME, Names
from tests.history.foreign.reading import columns, events, rows

A, B = FIRST_NAME, FIRST_NAME + 1


def pair(f: str, asked: str, completed: str, outcome: str = "ok") -> str:
    return (
        f"{{:type :invoke, :process 0, :f :{f}, :value {asked}, :time 1}}\n"
        f"{{:type :{outcome}, :process 0, :f :{f}, :value {completed}, :time 2}}\n"
    )


@pytest.mark.parametrize(
    ("workload", "f", "asked", "completed", "invoke", "ok"),
    [
        ("register", "write", "3", "3", (None, 3), (None, 3)),
        ("register", "read", "nil", "3", (None, None), (None, 3)),
        ("register", "read", "nil", "nil", (None, None), (None, None)),
        ("register", "write", "[7 3]", "[7 3]", (7, 3), (7, 3)),
        ("register", "read", "[7 nil]", "[7 3]", (7, None), (7, 3)),
        ("register", "write", ":a", ":a", (None, A), (None, A)),
        ("register", "write", '"a"', '"a"', (None, A), (None, A)),
        ("register", "write", "-1", "-1", (None, A), (None, A)),
        ("register", "write", "[:x :a]", "[:x :a]", (A, B), (A, B)),
        ("cas-register", "cas", "[1 2]", "[1 2]", (None, [1, 2]), (None, [1, 2])),
        ("cas-register", "cas", "[5 [1 2]]", "[5 [1 2]]", (5, [1, 2]), (5, [1, 2])),
        ("mutex", "acquire", "nil", "nil", (None, None), (None, None)),
        ("mutex", "release", "[4 nil]", "[4 nil]", (4, None), (4, None)),
        ("set", "add", "3", "3", (None, 3), (None, 3)),
        ("set", "read", "nil", "#{1 2}", (None, None), (None, [1, 2])),
        ("set", "read", "nil", "[1 2]", (None, None), (None, [1, 2])),
        ("set", "read", "[9 nil]", "[9 #{1 2 3}]", (9, None), (9, [1, 2, 3])),
        ("queue", "enqueue", "3", "3", (None, 3), (None, 3)),
        ("queue", "dequeue", "nil", "3", (None, None), (None, 3)),
        ("queue", "drain", "nil", "(3 4 5)", (None, None), (None, [3, 4, 5])),
        (
            "list-append",
            "txn",
            "[[:append 3 1] [:r 3 nil]]",
            "[[:append 3 1] [:r 3 [1 2]]]",
            (None, [1, 3, 1, 1, 0, 3, -1]),
            (None, [1, 3, 1, 1, 0, 3, 2, 1, 2]),
        ),
        (
            "list-append",
            "txn",
            "[[:r 3 nil]]",
            "[[:r 3 nil]]",
            (None, [0, 3, -1]),
            (None, [0, 3, 0]),
        ),
        (
            "rw-register",
            "txn",
            "[[:w 3 1]]",
            "[[:w 3 1]]",
            (None, [1, 3, 1, 1]),
            (None, [1, 3, 1, 1]),
        ),
        (
            "rw-register",
            "txn",
            "[[:r 3 nil]]",
            "[[:r 3 nil]]",
            (None, [0, 3, -1]),
            (None, [0, 3, 0]),
        ),
        (
            "rw-register",
            "txn",
            "[[:r 3 nil]]",
            "[[:r 3 7]]",
            (None, [0, 3, -1]),
            (None, [0, 3, 1, 7]),
        ),
    ],
)
def test_an_operation_on_objects(
    workload: str, f: str, asked: str, completed: str, invoke: tuple[object], ok: tuple[object]
) -> None:
    assert rows(pair(f, asked, completed), workload) == [("invoke", f, *invoke), ("ok", f, *ok)]


def test_what_was_read_counts_only_when_it_ended_ok() -> None:
    text = pair("txn", "[[:append 3 1] [:r 3 nil]]", "[[:append 3 1] [:r 3 [1]]]", "info")
    asked = [1, 3, 1, 1, 0, 3, -1]
    assert rows(text, "list-append") == [
        ("invoke", "txn", None, asked),
        ("info", "txn", None, asked),
    ]


def test_json_says_the_same() -> None:
    edn = pair("txn", "[[:append 3 1] [:r 3 nil]]", "[[:append 3 1] [:r 3 [1]]]")
    json = (
        '{"type": "invoke", "process": 0, "f": "txn", "value": [["append", 3, 1], ["r", 3, null]], "time": 1}\n'
        '{"type": "ok", "process": 0, "f": "txn", "value": [["append", 3, 1], ["r", 3, [1]]], "time": 2}\n'
    )
    assert events(json, "list-append") == events(edn, "list-append")


class TestLogs:
    def test_a_send(self) -> None:
        sent, acknowledged = events(pair("send", "[[:send 0 7]]", "[[:send 0 [4 7]]]"), "kafka")
        assert columns(sent) == {
            "time": 1,
            "process": "0",
            "kind": "invoke",
            "op": 0,
            "f": "send",
            "value": 7,
            "acks": -1,
            "topic": "0",
            "partition": 0,
            "delivery": "idempotent",
            "part_of": "send#0",
        }
        assert columns(acknowledged) == {
            "time": 2,
            "seq": 1,
            "process": "0",
            "kind": "ok",
            "op": 0,
            "f": "send",
            "value": 7,
            "topic": "0",
            "partition": 0,
            "offset": 4,
            "part_of": "send#0",
        }

    def test_a_poll_is_one_of_each_key(self) -> None:
        read_events = events(
            pair("poll", "[[:poll]]", "[[:poll {0 [[4 7] [5 8]], :x [[0 9]]}]]"), "kafka"
        )
        assert [
            (event.kind, event.op, event.topic, event.offsets, event.values)
            for event in read_events
        ] == [
            ("invoke", 0, "0", None, None),
            ("invoke", 1, ":x", None, None),
            ("ok", 0, "0", [4, 5], [7, 8]),
            ("ok", 1, ":x", [0], [9]),
        ]

    def test_keys_of_json_objects_are_numbers_again(self) -> None:
        text = (
            '{"type": "invoke", "process": 0, "f": "poll", "value": [["poll"]]}\n'
            '{"type": "ok", "process": 0, "f": "poll", "value": [["poll", {"0": [[4, 7]]}]]}\n'
        )
        assert [event.topic for event in events(text, "kafka")] == ["0", "0"]

    def test_a_transaction_is_its_micro_operations(self) -> None:
        text = pair(
            "txn",
            "[[:send 0 7] [:poll] [:send 0 8]]",
            "[[:send 0 [1 7]] [:poll {1 [[0 3]]}] [:send 0 [nil 8]]]",
        )
        completions = [event for event in events(text, "kafka") if event.kind == "ok"]
        assert [
            (event_.op, event_.f, event_.topic, event_.offset, event_.part_of)
            for event_ in completions
        ] == [
            (0, "send", "0", 1, "txn#0"),
            (1, "poll", "1", None, "txn#1"),
            (2, "send", "0", None, "txn#2"),
        ]

    def consumers(self, *between: str) -> list[str]:
        """The consumers that poll key 0, then, after these lines, keys 0 and 1."""
        polled = "{:type :ok, :process 3, :f :poll, :value [[:poll {0 [[0 1]], 1 [[0 1]]}]]}"
        asked = "{:type :invoke, :process 3, :f :poll, :value [[:poll]]}"
        lines = [asked, polled, *between, asked, polled]
        polls = [event for event in events("\n".join(lines), "kafka") if event.offsets]
        return [poll.process for poll in polls][2:]

    def assigned(self, f: str, rest: str) -> tuple[str, str]:
        line = f":process 3, :f :{f}, :value {rest}"
        return f"{{:type :invoke, {line}}}", f"{{:type :ok, {line}}}"

    def test_a_consumer_reads_on(self) -> None:
        assert self.consumers() == ["3", "3"]

    def test_who_keeps_a_key_reads_on_and_who_gets_it_anew_is_another_consumer(self) -> None:
        assert self.consumers(*self.assigned("assign", "[1]")) == ["3/1", "3"]

    def test_who_seeks_is_another_consumer(self) -> None:
        lines = self.assigned("assign", "[0 1] :seek-to-beginning? true")
        assert self.consumers(*lines) == ["3/1", "3/1"]

    def test_an_assignment_that_failed_changes_nothing(self) -> None:
        invoke, ok = self.assigned("assign", "[1]")
        assert self.consumers(invoke, ok.replace(":ok", ":fail")) == ["3", "3"]

    def test_who_subscribes_may_be_given_any_key_at_any_time(self) -> None:
        lines = self.assigned("subscribe", "[0 1]")
        assert self.consumers(*lines) == ["3/2", "3/2"]


def test_names_are_numbers_that_no_number_has() -> None:
    names = Names()
    text = pair("write", ":a", ":a") + pair("write", "[:x -5]", "[:x -5]").replace(
        ":time ", ":time 1"
    )
    read_events = events(text, "register", names)
    assert [names.value(event.value or 0) for event in read_events] == ["a", "a", -5, -5]
    assert names.spoken(f"{A} was read, not {B}.") == ":a was read, not :x."
    assert names.spoken(f"1{A} and {FIRST_NAME + 3}") == f"1{A} and {FIRST_NAME + 3}"


def test_the_nemesis_is_no_client() -> None:
    text = "{:type :info, :process :nemesis, :f :kill, :value {:n1 :done}, :time 7}"
    (event,) = events(text, "register")
    assert columns(event) == {
        "time": 7,
        "process": "nemesis",
        "kind": "info",
        "f": "kill",
        "original": "{:value {:n1 :done}}",
    }


def test_who_sends_or_polls_several_times_at_once_is_several_clients() -> None:
    lines = [
        "{:type :invoke, :process 0, :f :send, :value [[:send 1 7]]}",
        "{:type :invoke, :process 0, :f :send, :value [[:send 1 8]]}",
        "{:type :ok, :process 0, :f :send, :value [[:send 1 [1 8]]]}",
        "{:type :ok, :process 0, :f :send, :value [[:send 1 [0 7]]]}",
        "{:type :invoke, :process 0, :f :send, :value [[:send 1 9]]}",
        "{:type :ok, :process 0, :f :send, :value [[:send 1 [2 9]]]}",
    ]
    done = [event for event in events("\n".join(lines), "kafka") if event.kind == "ok"]
    assert [(event.process, event.value, event.offset) for event in done] == [
        ("0/1", 8, 1),
        ("0/2", 7, 0),
        ("0", 9, 2),
    ]
