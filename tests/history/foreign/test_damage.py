"""Damaged histories: what is there is read, and what is wrong is said by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.model import Verdict
from nemesis.history.errors import HistoryError
from nemesis.history.foreign.importing import read_file
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operation_order import line_at
from nemesis.history.foreign.pairs import MAX_OPEN
from nemesis.history.foreign.problems import Damage
from tests.history.foreign.reading import events, events_of, notes, problems, read
from tests.nemesis.judging.foreign_judge import judged

WHOLE = """{:type :invoke, :f :write, :value 3, :process 0, :time 10}
{:type :ok, :f :write, :value 3, :process 0, :time 20}
{:type :invoke, :f :read, :value nil, :process 1, :time 30}
{:type :ok, :f :read, :value 3, :process 1, :time 40}
"""
LINES = WHOLE.splitlines(keepends=True)


def said(text: str) -> list[tuple[object, ...]]:
    return [
        (event.time, event.process, event.kind, event.f, event.value)
        for event in events(text, "register")
    ]


ALL = [
    (10, "0", "invoke", "write", 3),
    (20, "0", "ok", "write", 3),
    (30, "1", "invoke", "read", None),
    (40, "1", "ok", "read", 3),
]


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        "".join(LINES)[:-1],
        f"[{WHOLE}]",
        f"({WHOLE})",
        "[\n" + "\n".join(f" {line.strip()}," for line in LINES) + "\n]\n",
        " ".join(line.strip() for line in LINES),
        WHOLE.replace(", ", ",\n  "),
        "; a comment\n\n" + WHOLE.replace("\n", "\n; between\n"),
        "".join(f"#jepsen.history.Op{line}" for line in LINES),
        "\ufeff" + WHOLE,
        WHOLE.replace("\n", "\r\n"),
    ],
)
def test_shapes_of_a_whole_history(text: str) -> None:
    assert said(text) == ALL
    assert problems(text) == []


def test_what_cannot_be_read_costs_only_itself() -> None:
    text = LINES[0] + "garbage\n{:type :invoke, :f :wri\n" + "".join(LINES[1:]) + "{:f :read}\n"
    assert said(text) == ALL
    assert problems(text) == [
        "each of the 3 lines 2–3, 7 cannot be read as an operation; the first: it is no map"
    ]
    assert read(text).problems.may_lack_operations()


def test_a_torn_tail_costs_no_operation_before_it() -> None:
    text = WHOLE + "{:type :invoke, :f :wri"
    assert said(text) == ALL
    assert problems(text) == ["line 5 is cut off where the file ends (it ends inside a value)"]
    assert not read(text).problems.may_lack_operations()


def test_times_that_fall_between_invocations_or_completions_alone_are_a_note() -> None:
    """No invocation changes places with a completion, so the same operations end before others begin."""
    lines = [
        "{:type :invoke, :f :write, :value 1, :process 0, :time 20}",
        "{:type :invoke, :f :read, :value nil, :process 1, :time 10}",
        "{:type :ok, :f :write, :value 1, :process 0, :time 40}",
        "{:type :ok, :f :read, :value 1, :process 1, :time 30}",
    ]
    assert problems("\n".join(lines)) == []
    assert read("\n".join(lines)).problems.notes() == [
        f"each of the 2 lines 2, 4 {Damage.TIMES_AGREE.sentence}"
    ]


def test_an_invocation_earlier_than_a_completion_before_it_is_damage() -> None:
    """By its line the read began after the write had ended; by its time before that."""
    lines = [
        "{:type :invoke, :f :write, :value 1, :process 0, :time 20}",
        "{:type :ok, :f :write, :value 1, :process 0, :time 40}",
        "{:type :invoke, :f :read, :value nil, :process 1, :time 30}",
        "{:type :ok, :f :read, :value nil, :process 1, :time 50}",
    ]
    assert problems("\n".join(lines)) == [
        "line 3 is earlier than the line before: the lines were sorted by time"
    ]


def test_completions_of_a_process_that_times_put_elsewhere_are_damage() -> None:
    lines = [
        "{:type :ok, :f :write, :value 1, :process 1, :time 5}",
        "{:type :ok, :f :read, :value 1, :process 0, :time 20}",
        "{:type :ok, :f :read, :value nil, :process 0, :time 10}",
    ]
    assert "line 3 is earlier than the line before: the lines were sorted by time" in problems(
        "\n".join(lines)
    )


def test_a_torn_line_may_belong_anywhere_if_times_fall() -> None:
    """Its time is unknown: it may be a write in front of the reads."""
    lines = [
        "{:type :invoke, :f :read, :value nil, :process 1, :time 10}",
        "{:type :invoke, :f :read, :value nil, :process 2, :time 9}",
        "{:type :ok, :f :read, :value 7, :process 1, :time 20}",
        "{:type :ok, :f :read, :value 7, :process 2, :time 21}",
        "{:type :invoke, :f :write, :value 7, :process 0, :time 5",
    ]
    assert read("\n".join(lines)).problems.may_lack_operations()


def test_lines_are_sorted_by_time() -> None:
    text = LINES[2] + LINES[3] + LINES[0] + LINES[1]
    assert said(text) == ALL
    assert problems(text) == [
        "each of the 2 lines 3–4 is earlier than the line before: the lines were sorted by time"
    ]


def indexed(*numbers: int) -> str:
    lines = [line.replace("}", f", :index {index}}}") for index, line in enumerate(LINES)]
    return "".join(lines[number] for number in numbers)


def test_an_index_counts_for_more_than_a_line_and_a_time() -> None:
    assert problems(indexed(0, 1, 2, 3)) == []
    text = indexed(2, 0, 1, 3)
    assert said(text) == ALL
    assert problems(text) == [
        "each of the 2 lines 2–3 is not where its index belongs: the lines were sorted by index"
    ]
    falling = indexed(0, 1, 2, 3).replace(":time 20", ":time 90")
    assert [row[0] for row in said(falling)] == [10, 90, 91, 92]
    assert problems(falling) == []
    assert read(falling).problems.notes() == [
        "line 3 is earlier than the line with the index before: the order is that of the index"
    ]


def test_indexes_without_a_gap_prove_that_nothing_is_missing() -> None:
    text = indexed(0, 1) + "garbage\n" + indexed(2, 3)
    file = read(text)
    assert file.problems.sentences() == ["line 3 cannot be read as an operation (it is no map)"]
    assert not file.problems.may_lack_operations(is_complete=file.is_complete)
    assert not read(indexed(0, 1) + "garbage\n" + indexed(3)).is_complete


def test_without_times_the_lines_are_the_order() -> None:
    text = "".join(line.split(", :time")[0] + "}\n" for line in LINES)
    assert [row[1:] for row in said(text)] == [row[1:] for row in ALL]
    assert [line_at(event.time) for event in events(text, "register")] == [1, 2, 3, 4]
    assert not read(text).is_timed
    assert problems(text) == []


def test_a_line_without_time_among_others() -> None:
    text = WHOLE.replace(", :time 20", "")
    assert [row[0] for row in said(text)] == [10, 11, 30, 40]
    assert problems(text) == ["line 2 has no time: it was placed by its line"]


def at_ten(process: int, type_: str, value: int) -> str:
    return f"{{:type :{type_}, :f :write, :value {value}, :process {process}, :time 10}}\n"


def test_at_equal_times_what_begins_is_before_what_another_process_ends() -> None:
    text = LINES[0].replace("10", "5") + at_ten(0, "ok", 3) + at_ten(1, "invoke", 4)
    assert [row[:3] for row in said(text)] == [
        (5, "0", "invoke"),
        (10, "1", "invoke"),
        (11, "0", "ok"),
    ]
    assert problems(text) == []
    assert notes(text) == [
        "line 3 begins at the time at which another process ends an operation: the two count as concurrent"
    ]
    turned = text + at_ten(0, "invoke", 5)
    assert [row[1:3] for row in said(turned)][1:] == [("1", "invoke"), ("0", "ok"), ("0", "invoke")]
    assert problems(turned) == []
    with_index = "".join(
        line.replace("}", f", :index {index}}}") for index, line in enumerate(text.splitlines())
    )
    assert [row[1:3] for row in said(with_index)][1:] == [("0", "ok"), ("1", "invoke")]
    assert notes(with_index) == []


def test_two_processes_that_turn_at_one_time_leave_the_order_open() -> None:
    text = LINES[0].replace("10", "5") + written("invoke", "4", 6).replace("process 0", "process 1")
    text += (
        at_ten(0, "ok", 3) + at_ten(0, "invoke", 5) + at_ten(1, "ok", 4) + at_ten(1, "invoke", 6)
    )
    assert [row[1:3] for row in said(text)][2:] == [
        ("0", "invoke"),
        ("1", "invoke"),
        ("0", "ok"),
        ("1", "ok"),
    ]
    assert problems(text) == [f"each of the 2 lines 4, 6 {Damage.TURN_TOGETHER.sentence}"]


def test_a_missing_completion() -> None:
    again = LINES[0].replace("3,", "4,").replace("10", "15")
    assert said(LINES[0] + again + "".join(LINES[1:])) == [
        (10, "0", "invoke", "write", 3),
        (15, "0", "invoke", "write", 4),
        *[(20, "0", "ok", "write", 3), *ALL[2:]],
    ]
    assert problems(LINES[0] + again + "".join(LINES[1:])) == [
        "line 2 invokes although its process had not completed what it invoked before"
    ]


def written(type_: str, value: str, time: int) -> str:
    return f"{{:type :{type_}, :f :write, :value {value}, :process 0, :time {time}}}\n"


def test_a_completion_belongs_to_the_invocation_with_whose_value_it_agrees() -> None:
    begun = written("invoke", "3", 10) + written("invoke", "4", 20)
    assert said(begun + written("ok", "3", 30) + written("fail", "4", 40)) == [
        (10, "0", "invoke", "write", 3),
        (20, "0", "invoke", "write", 4),
        (30, "0", "ok", "write", 3),
        (40, "0", "fail", "write", 4),
    ]
    assert problems(begun + written("ok", "4", 30)) == [
        "line 2 invokes although its process had not completed what it invoked before"
    ]


def test_a_completion_of_nobody_knows_which_completes_none_of_them() -> None:
    text = written("invoke", "3", 10) + written("invoke", "4", 20) + written("fail", "nil", 30)
    assert [row for row in said(text) if row[-1] is not None] == [
        (10, "0", "invoke", "write", 3),
        (20, "0", "invoke", "write", 4),
    ]
    assert "line 3 completes what its process had not invoked" in problems(text)


def test_a_completion_with_another_value_is_of_another_operation() -> None:
    text = written("invoke", "3", 10) + written("ok", "4", 20)
    assert said(text) == [
        (0, "0", "invoke", "write", 4),
        (10, "0", "invoke", "write", 3),
        (20, "0", "ok", "write", 4),
    ]
    assert problems(text) == ["line 2 completes what its process had not invoked"]


def test_of_what_a_process_leaves_open_for_ever_only_the_last_can_be_completed() -> None:
    begun = "".join(written("invoke", str(n), 10 + n) for n in range(MAX_OPEN + 1))
    assert len(problems(begun + written("ok", "1", 900))) == 1
    assert len(problems(begun + written("ok", "0", 900))) == 2


def test_a_missing_invocation_may_have_been_any_time_before() -> None:
    text = LINES[1] + "".join(LINES[2:]) + LINES[1].replace("3,", "4,").replace("20", "50")
    assert said(text) == [
        (0, "0", "invoke", "write", 3),
        (20, "0", "ok", "write", 3),
        (20, "0", "invoke", "write", 4),
        *ALL[2:],
        (50, "0", "ok", "write", 4),
    ]
    assert problems(text) == ["each of the 2 lines 1, 4 completes what its process had not invoked"]


def test_a_missing_invocation_may_be_a_line_that_nobody_can_read() -> None:
    text = LINES[0] + "{\n" + LINES[1] + LINES[1].replace("3,", "4,").replace("20", "50")
    assert said(text) == [
        (0, "0", "invoke", "write", 4),
        *ALL[:2],
        (50, "0", "ok", "write", 4),
    ]


def test_a_line_twice_is_one_line() -> None:
    text = LINES[0] * 2 + LINES[1] * 2 + "".join(LINES[2:])
    assert said(text) == ALL
    assert problems(text) == [
        "each of the 2 lines 2, 4 says again what the line before of its process said; it is left out"
    ]


def test_an_unknown_function_is_kept_and_said() -> None:
    text = WHOLE + "{:type :invoke, :f :fly, :value 3, :process 0, :time 50}\n"
    assert said(text) == [*ALL, (50, "0", "invoke", "fly", None)]
    assert problems(text) == []
    assert notes(text) == [
        "line 5 is of a function that this workload does not judge: it is left out (1 × :f fly)"
    ]
    assert problems(text.replace(":fly", ":cas")) == [
        "line 5 is of a function that this workload does not have (:f cas)"
    ]


def test_a_wrong_value_of_an_ok_leaves_open_how_it_ended() -> None:
    text = LINES[0].replace("write", "add") + LINES[1].replace("write", "add")
    text += LINES[2] + LINES[3]
    read_events = events(text, "set")
    assert [(event.kind, event.f) for event in read_events] == [
        *[("invoke", "add"), ("ok", "add"), ("invoke", "read"), ("info", "read")],
    ]
    assert problems(text, "set") == [
        "line 4 has a value that its function cannot have (read did not return a collection)"
    ]


def test_many_lines_are_named_in_few_words() -> None:
    text = "".join(line + "garbage\n" for line in LINES) * 5
    (sentence,) = [problem for problem in problems(text) if "cannot be read" in problem]
    assert sentence == (
        "each of the 20 lines 2, 4, 6, 8, 10, 12, 14, 16 … cannot be read as an operation; the first: it is no map"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is no history of operations: it is empty"),
        (b"\n\n", "is no history of operations: it is empty"),
        (b"hello\n", "is no history of operations: line 1 is none, it is no map"),
        (b"\x00\x01\x02", "is no history: it is not text"),
        (b"\xff\xfe garbage", "is no history of operations"),
        (b'{"a": 1}\n', "line 1 is none, its type is none of invoke, ok, fail, info"),
        (b"[" * 100_000, "nested more than 100 deep"),
        (b'[{"a":' * 100_000, "is no history of operations"),
    ],
)
def test_what_is_no_history(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "history.edn"
    file.write_bytes(content)
    with pytest.raises(HistoryError) as raised:
        read_file(file)
    assert sentence in str(raised.value)
    assert str(file) in str(raised.value)


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_what_is_no_file(path: str) -> None:
    with pytest.raises(HistoryError, match=path):
        read_file(Path(path))


DAMAGE = st.lists(
    st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.text(max_size=4)), max_size=4
)


@given(DAMAGE, st.sampled_from(["register", "set", "list-append", "kafka"]))
def test_no_damage_is_an_error(damage: list[tuple[int, int, str]], workload: str) -> None:
    text = WHOLE
    for position, removed, added in damage:
        text = text[:position] + added + text[position + removed :]
    try:
        file = read(text)
    except HistoryError:
        return
    read_events = list(events_of(file, workload, Names()))
    assert read_events
    times = [operation.time for operation in file.operations]
    assert len(set(times)) == len(times)


def test_one_object_and_several_do_not_go_together() -> None:
    """A vector of two in the place of a value is an object and its value: so a plain one would be misread."""
    text = LINES[0].replace("3,", "[1 2],") + LINES[1].replace("3,", "[1 2],") + "".join(LINES[2:])
    said = "is of one of several objects ([key value]) where lines before are of the only one, or the reverse"
    assert problems(text) == [f"each of the 2 lines 3–4 {said}"]
    assert problems("".join(LINES[:3]) + LINES[3].replace("3,", "[1 2],")) == [f"line 4 {said}"]
    assert problems(text.replace(":value nil", ":value [1 nil]").replace("3,", "[1 3],")) == []


@pytest.mark.parametrize("time", ["0.5", "-5", '"12:00"'])
def test_a_time_that_is_none_leaves_a_line_without_a_place(time: str) -> None:
    assert problems(WHOLE.replace(":time 20", f":time {time}"))[0] == (
        "line 2 cannot be read as an operation (its time is no whole number of nanoseconds from 0 on)"
    )
    text = indexed(0, 1, 2, 3).replace(":time 20", f":time {time}")
    assert problems(text) == []
    assert notes(text) == ["line 2 has no time: its index states its place"]


def test_an_index_states_the_place_of_a_line_without_time() -> None:
    ordered = indexed(0, 1, 2, 3).replace(", :time 20", "").splitlines(keepends=True)
    assert judged("".join(ordered), "register").verdict is Verdict.VALID
    assert problems("".join([*ordered[:1], *ordered[2:], ordered[1]])) == [
        "line 4 is not where its index belongs: the lines were sorted by index"
    ]
