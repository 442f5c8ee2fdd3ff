"""What goes out comes back: a history that is exported and read again is the same events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.events import Event
from nemesis.history.foreign.edn import EdnSet, Keyword, dumps
from nemesis.history.foreign.exporting import operations_of, write
from nemesis.history.foreign.importing import WORKLOADS
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operations import Operation, form_of
from nemesis.history.run_directory import RunDirectory, RunInfo
from tests.history.foreign.reading import events, problems

VALUES = st.one_of(
    st.integers(-3, 9),
    st.sampled_from(["a", "b c", '"', ""]),
    st.sampled_from([Keyword("a"), Keyword("b/c")]),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    st.just(2**70),
    st.just(1.5),
)
KEYS = st.one_of(st.integers(0, 2), st.sampled_from([Keyword("x"), "x", "0y", "1 2"]))
RECORDS = st.lists(st.tuples(st.integers(0, 9), VALUES), min_size=1, max_size=3).map(tuple)

Asked = tuple[str, Any, Any]
"""Function, the value that it is invoked with, and the value that it returns."""


Alternatives = tuple[st.SearchStrategy[Asked], ...]
"""Operations of different histories."""


def plain(*functions: st.SearchStrategy[Asked]) -> Alternatives:
    """Operations on one object; on one of several."""
    function = st.one_of(*functions)
    keyed = st.builds(
        lambda key, said: (said[0], (key, said[1]), (key, said[2])), KEYS, st.one_of(*functions)
    )
    return function, keyed


def takes(f: str) -> st.SearchStrategy[Asked]:
    return VALUES.map(lambda value: (f, value, value))


def returns(f: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Asked]:
    return values.map(lambda value: (f, None, value))


def returns_nothing(f: str) -> st.SearchStrategy[Asked]:
    return st.just((f, None, None))


def micros(write: str, read: st.SearchStrategy[Any]) -> st.SearchStrategy[Asked]:
    def said(parts: list[tuple[str, Any, Any]]) -> Asked:
        asked = tuple((Keyword(f), k, None if f == "r" else v) for f, k, v in parts)
        return "txn", asked, tuple((Keyword(f), k, v) for f, k, v in parts)

    part = st.one_of(st.tuples(st.just(write), KEYS, VALUES), st.tuples(st.just("r"), KEYS, read))
    return st.lists(part, max_size=3).map(said)


def on_logs() -> st.SearchStrategy[Asked]:
    def said(parts: list[tuple[str, Any, Any, Any]]) -> Asked:
        asked = tuple(
            (Keyword("send"), k, v) if f == "send" else (Keyword("poll"),) for f, k, v, _ in parts
        )
        completed = tuple(
            (Keyword("send"), k, (7, v)) if f == "send" else (Keyword("poll"), polled)
            for f, k, v, polled in parts
        )
        functions = {f for f, *_ in parts}
        return functions.pop() if len(functions) == 1 else "txn", asked, completed

    part = st.tuples(
        st.sampled_from(["send", "poll"]),
        KEYS,
        VALUES,
        st.dictionaries(KEYS, RECORDS, max_size=2),
    )
    assign = st.lists(KEYS, max_size=3).map(tuple).map(lambda keys: ("assign", keys, keys))
    return st.one_of(st.lists(part, max_size=3).map(said), assign)


def takes_number(f: str) -> st.SearchStrategy[Asked]:
    return st.integers(0, 9).map(lambda number: (f, number, number))


TEXTS = st.text('ab é"', max_size=4)
BALANCES = st.dictionaries(KEYS, st.one_of(st.integers(-9, 9), st.none()), max_size=3)


def transfer(said: tuple[Any, Any, int]) -> Asked:
    value = dict(zip(map(Keyword, ("from", "to", "amount")), said, strict=True))
    return "transfer", value, value


TRANSFERS = st.tuples(KEYS, KEYS, st.integers(-9, 9)).map(transfer)
OPERATIONS: dict[str, Alternatives] = {
    "register": plain(takes("write"), returns("read", st.one_of(st.none(), VALUES))),
    "cas-register": plain(
        takes("write"), st.tuples(VALUES, VALUES).map(lambda pair: ("cas", pair, pair))
    ),
    "mutex": plain(returns_nothing("acquire"), returns_nothing("release")),
    "set": plain(
        takes("add"), returns("read", st.lists(st.integers(0, 9), max_size=3).map(EdnSet))
    ),
    "queue": plain(
        takes("enqueue"),
        returns("dequeue", VALUES),
        returns("drain", st.lists(st.integers(0, 9), max_size=3).map(tuple)),
    ),
    "counter": plain(takes_number("add"), returns("read", st.integers(-9, 9))),
    "g-counter": plain(takes_number("add"), returns("read", st.integers(-9, 9))),
    "pn-counter": plain(
        st.integers(-9, 9).map(lambda number: ("add", number, number)),
        returns("read", st.integers(-9, 9)),
    ),
    "multi-register": (micros("w", st.one_of(st.none(), VALUES)),),
    "monotonic-keys": (
        returns(
            "read", st.dictionaries(KEYS, st.one_of(st.none(), st.integers(-9, 9)), max_size=3)
        ),
    ),
    "predicate-inserts": (
        st.tuples(KEYS, VALUES).map(
            lambda pair: ("insert", (pair[0], (pair[1], None)), (pair[0], (pair[1], None)))
        ),
    ),
    "key-value": plain(
        TEXTS.map(lambda text: ("put", text, text)),
        TEXTS.map(lambda text: ("append", text, text)),
        returns("get", TEXTS),
    ),
    "unique-ids": (returns("generate", VALUES),),
    "bank": plain(TRANSFERS, returns("read", BALANCES)),
    "list-append": (micros("append", st.lists(VALUES, max_size=3).map(tuple)),),
    "rw-register": (micros("w", st.one_of(st.none(), VALUES)),),
    "kafka": (on_logs(),),
}


OPERATIONS["linearizable-set"] = OPERATIONS["set"]
OPERATIONS["causal-reverse"] = plain(
    takes("write"), returns("read", st.lists(st.integers(0, 9), max_size=3).map(EdnSet))
)
OPERATIONS["sequential"] = (
    st.one_of(
        KEYS.map(lambda key: ("write", key, key)),
        st.tuples(KEYS, st.lists(st.one_of(st.none(), VALUES), max_size=3).map(tuple)).map(
            lambda answer: ("read", answer[0], answer)
        ),
    ),
)
OPERATIONS["long-fork"] = OPERATIONS["rw-register"]
OPERATIONS["fifo-queue"] = OPERATIONS["queue"]


@st.composite
def histories(draw: st.DrawFn, workload: str) -> str:
    """A history of some processes, as EDN."""
    operations = draw(st.sampled_from(OPERATIONS[workload]))
    open_: dict[int, Asked] = {}
    lines = []
    for time in range(draw(st.integers(1, 12))):
        process = draw(st.integers(0, 2))
        if process in open_:
            f, asked, completed = open_.pop(process)
            outcome = draw(st.sampled_from(["ok", "ok", "ok", "fail", "info"]))
            value = completed if outcome == "ok" else asked
        else:
            f, value, _ = open_[process] = draw(operations)
            outcome = "invoke"
        error = draw(st.sampled_from([None, Keyword("timeout"), "no leader", (Keyword("a"), 1)]))
        operation = Operation(
            line=0, type=outcome, process=process, f=f, value=value, time=time * 10, error=error
        )
        lines.append(dumps(form_of(operation)))
    return "\n".join(lines)


def exported(history_events: list[Event], workload: str, names: Names) -> str:
    rows = [
        {name: value for name, value in msgspec.structs.asdict(event).items() if value is not None}
        for event in history_events
    ]
    operations = list(WORKLOADS[workload]().operations(rows, names))
    return "\n".join(dumps(form_of(operation)) for operation in operations)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_history_that_goes_out_comes_back(workload: str) -> None:
    @given(histories(workload))
    def law(text: str) -> None:
        names, again = Names(), Names()
        read_events = events(text, workload, names)
        assert problems(text, workload) == []
        out = exported(read_events, workload, names)
        assert len(out.splitlines()) == len(text.splitlines())
        assert events(out, workload, again) == read_events
        assert exported(read_events, workload, again) == out

    law()


def run_of(tmp_path: Path, *events: Event) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "store", RunInfo(scenario="mine", seed=1))
    lines = [msgspec.json.encode(event) for event in events]
    run.raw_file("clients").write_bytes(b"\n".join(lines) + b"\n")
    return run


def client(time: int, process: str, kind: str, op: int, f: str, **columns: Any) -> Event:
    return Event(
        time=time,
        process=process,
        kind=kind,
        op=op,
        f=f,
        seq=time,
        topic="t",
        partition=0,
        **columns,
    )


def test_what_our_clients_did_is_jepsens_kafka_workload(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        client(100, "producer-0", "invoke", 0, "send", value=7, acks=-1),
        client(110, "producer-0", "ok", 0, "send", offset=0),
        client(120, "producer-0", "invoke", 1, "send", value=8, acks=-1),
        client(130, "producer-0", "info", 1, "send", error="REQUEST_TIMED_OUT"),
        client(140, "producer-0", "invoke", 2, "send", value=9, acks=1),
        client(150, "producer-0", "ok", 2, "send", offset=2),
        client(160, "consumer-0", "invoke", 0, "poll", offset=0),
        client(165, "consumer-0", "invoke", 1, "poll", offset=0),
        client(170, "consumer-0", "ok", 0, "poll", offsets=[0, 1], values=[7, 8]),
        client(180, "consumer-0", "ok", 1, "poll", offsets=[], values=[]),
        client(190, "admin-0", "invoke", 0, "create-topic", value=1),
    )
    file = tmp_path / "out.edn"
    assert write(operations_of(run), file) == 10
    lines = [
        line.split(", :client")[0].split(":type ")[1] for line in file.read_text().splitlines()
    ]
    assert lines == [
        ':invoke, :process 0, :f :send, :value [[:send "t-0" 7]], :time 0, :index 0',
        ':ok, :process 0, :f :send, :value [[:send "t-0" [0 7]]], :time 10, :index 1',
        ':invoke, :process 0, :f :send, :value [[:send "t-0" 8]], :time 20, :index 2',
        ':info, :process 0, :f :send, :value [[:send "t-0" 8]], :time 30, :index 3, :error :REQUEST_TIMED_OUT',
        ':invoke, :process 1, :f :send, :value [[:send "t-0" 9]], :time 40, :index 4',
        ':info, :process 1, :f :send, :value [[:send "t-0" 9]], :time 50, :index 5',
        ":invoke, :process 2, :f :poll, :value [[:poll]], :time 60, :index 6",
        ":invoke, :process 3, :f :poll, :value [[:poll]], :time 65, :index 7",
        ':ok, :process 2, :f :poll, :value [[:poll {"t-0" [[0 7] [1 8]]}]], :time 70, :index 8',
        ":ok, :process 3, :f :poll, :value [[:poll {}]], :time 80, :index 9",
    ]
    assert problems(file.read_text(), "kafka") == []


def test_an_existing_file_is_never_written_to(tmp_path: Path) -> None:
    file = tmp_path / "out.edn"
    file.write_text("mine")
    with pytest.raises(FileExistsError):
        write([], file)
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_what_fails_half_way_leaves_no_file(tmp_path: Path) -> None:
    operation = Operation(line=1, type="ok", process=0, f="read", value=object())
    with pytest.raises(TypeError):
        write([operation], tmp_path / "out.edn")
    assert list(tmp_path.iterdir()) == []
