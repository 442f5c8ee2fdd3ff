"""Whatever happens to the file of a correct system's history, the system is not convicted."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers import FOREIGN
from nemesis.checkers.framework.model import Verdict
from nemesis.history.errors import HistoryError
from nemesis.history.foreign.edn import Keyword, dumps
from nemesis.history.foreign.operations import Operation, form_of
from nemesis.judging.foreign import EXPLICABLE
from tests.nemesis.judging.foreign_judge import judged

Step = Callable[[str, Any], Any]
"""Carries an operation out; returns what it returns, or ``REFUSED``."""
REFUSED = object()
PROCESSES = 3


def a_register() -> Step:
    state: list[Any] = [None]

    def step(f: str, asked: Any) -> Any:
        if f == "cas":
            if asked[0] != state[0]:
                return REFUSED
            state[0] = asked[1]
        elif f == "write":
            state[0] = asked
        return state[0] if f == "read" else asked

    return step


def a_mutex() -> Step:
    holds = [False]

    def step(f: str, asked: Any) -> Any:
        if holds[0] == (f == "acquire"):
            return REFUSED
        holds[0] = f == "acquire"
        return asked

    return step


def a_collection() -> Step:
    elements: list[Any] = []

    def step(f: str, asked: Any) -> Any:
        if f in ("add", "enqueue", "write"):
            elements.append(asked)
            return asked
        if f == "dequeue":
            return elements.pop(0) if elements else REFUSED
        reported = tuple(elements)
        if f == "drain":
            elements.clear()
        return reported

    return step


def a_counter() -> Step:
    added: list[int] = []

    def step(f: str, asked: Any) -> Any:
        if f == "add":
            added.append(asked)
            return asked
        return sum(added)

    return step


def an_eventual_counter() -> Step:
    added: list[int] = []

    def step(f: str, asked: Any) -> Any:
        if f == "add":
            added.append(asked)
            return asked
        return sum(added if f == "final-read" else added[::2])

    return step


def a_counting_table() -> Step:
    counts = {0: 0, 1: 0}

    def step(f: str, asked: Any) -> Any:
        if f == "inc":
            counts[asked] += 1
        return dict(counts)

    return step


def an_exclusive_table() -> Step:
    inserted: set[Any] = set()

    def step(_: str, asked: Any) -> Any:
        if asked[0] in inserted:
            return REFUSED
        inserted.add(asked[0])
        return asked

    return step


def a_store() -> Step:
    text = [""]

    def step(f: str, asked: Any) -> Any:
        if f == "get":
            return text[0]
        text[0] = asked if f == "put" else text[0] + asked
        return asked

    return step


def a_generator() -> Step:
    ids = count()
    return lambda _, __: next(ids)


def a_bank() -> Step:
    balances = {0: 5, 1: 5}

    def step(f: str, asked: Any) -> Any:
        if f == "read":
            return dict(balances)
        if balances[asked["from"]] < asked["amount"]:
            return REFUSED
        balances[asked["from"]] -= asked["amount"]
        balances[asked["to"]] += asked["amount"]
        return asked

    return step


def a_database() -> Step:
    lists: dict[int, tuple[Any, ...]] = {}
    registers: dict[int, Any] = {}

    def step(_: str, asked: Any) -> Any:
        reported = []
        for f, key, value in asked:
            if f == "append":
                lists[key] = (*lists.get(key, ()), value)
            elif f == "w":
                registers[key] = value
            reported.append(
                (f, key, (lists.get(key, ()) or registers.get(key)) if f == "r" else value)
            )
        return tuple(reported)

    return step


def a_table() -> Step:
    inserted: set[Any] = set()

    def step(f: str, asked: Any) -> Any:
        if f == "write":
            inserted.add(asked)
            return asked
        return asked, tuple(index if asked in inserted else None for index in (2, 1, 0))

    return step


def a_log() -> Step:
    log: list[Any] = []
    reached: dict[int, int] = {}

    def step(f: str, asked: Any) -> Any:
        if f == "send":
            log.append(asked[0][2])
            return ((Keyword("send"), 0, (len(log) - 1, log[-1])),)
        process = asked[0][1]
        start = reached.get(process, 0)
        reached[process] = len(log)
        records = tuple(enumerate(log))[start:]
        return ((Keyword("poll"), {0: records} if records else {}),)

    return step


WORDS = {
    "register": (a_register, ("read", "write")),
    "cas-register": (a_register, ("read", "write", "cas")),
    "mutex": (a_mutex, ("acquire", "release")),
    "set": (a_collection, ("add", "read")),
    "linearizable-set": (a_collection, ("add", "read")),
    "queue": (a_collection, ("enqueue", "dequeue", "drain")),
    "fifo-queue": (a_collection, ("enqueue", "dequeue")),
    "counter": (a_counter, ("add", "read")),
    "g-counter": (an_eventual_counter, ("add", "read", "final-read")),
    "pn-counter": (an_eventual_counter, ("add", "subtract", "read", "final-read")),
    "multi-register": (a_database, ("w",)),
    "monotonic-keys": (a_counting_table, ("read", "inc")),
    "predicate-inserts": (an_exclusive_table, ("insert-row",)),
    "key-value": (a_store, ("put", "extend", "get")),
    "unique-ids": (a_generator, ("generate",)),
    "bank": (a_bank, ("transfer", "read")),
    "list-append": (a_database, ("append",)),
    "rw-register": (a_database, ("w",)),
    "causal-reverse": (a_collection, ("write", "read")),
    "sequential": (a_table, ("write", "query")),
    "long-fork": (a_database, ("insert", "snapshot")),
    "kafka": (a_log, ("send", "poll")),
}


def asked_for(draw: st.DrawFn, f: str, number: int, process: int) -> tuple[str, Any]:
    """An operation of a function: its name and value. Written values are new ones."""
    if f in ("append", "w"):
        micros = st.tuples(st.sampled_from([f, "r"]), st.integers(0, 1))
        drawn = draw(st.lists(micros, min_size=1, max_size=3))
        return "txn", tuple(
            (Keyword(item), key, None if item == "r" else 10 * number + index)
            for index, (item, key) in enumerate(drawn)
        )
    if f in ("put", "extend"):
        return "append" if f == "extend" else f, f"{number},"
    if f == "inc":
        return f, number % 2
    if f == "subtract":
        return "add", -number
    if f == "insert-row":
        return "insert", (number // 3, (number, None))
    if f == "query":
        return "read", max(0, number - 1)
    if f == "insert":
        return "txn", ((Keyword("w"), number, 1),)
    if f == "snapshot":
        return "txn", tuple((Keyword("r"), key, None) for key in range(max(0, number - 3), number))
    values = {
        **dict.fromkeys(("write", "add", "enqueue"), number),
        "cas": (draw(st.integers(0, max(number - 1, 0))), number),
        "transfer": {Keyword("from"): number % 2, Keyword("to"): 1, Keyword("amount"): number % 7},
        "send": ((Keyword("send"), 0, number),),
        "poll": ((Keyword("poll"), process),),
    }
    return f, values.get(f)


@st.composite
def lines(draw: st.DrawFn, workload: str) -> list[str]:
    """A history of a correct system, a line each: operations take effect at some moment of their time."""
    make, functions = WORDS[workload]
    step = make()
    under_way: dict[int, list[Any]] = {}
    said: list[str] = []

    def say(kind: str, process: int, f: str, value: Any) -> None:
        is_final = f == "final-read"
        operation = Operation(
            line=0,
            type=kind,
            process=process,
            f="read" if is_final else f,
            value=value,
            time=10 * len(said) + 10,
            other={"final?": True} if is_final else None,
        )
        said.append(dumps(form_of(operation)) + "\n")

    for number in range(draw(st.integers(1, 24))):
        process = draw(st.integers(0, PROCESSES - 1))
        if process not in under_way:
            f, value = asked_for(draw, draw(st.sampled_from(functions)), number, process)
            under_way[process] = [f, value]
            is_poll = f == "poll"
            say("invoke", process, f, ((Keyword("poll"),),) if is_poll else value)
        elif len(under_way[process]) == 2:
            under_way[process].append(step(*under_way[process]))
        else:
            f, value, reported = under_way.pop(process)
            if reported is REFUSED:
                say("fail", process, f, value)
            else:
                say("ok", process, f, reported)
    return said


Damage = Callable[[list[str]], list[str]]


def torn(index: int, length: int) -> Damage:
    return lambda text: [
        line[: length + 1] + "\n" if n == index % len(text) else line for n, line in enumerate(text)
    ]


def blotted(index: int, length: int) -> Damage:
    """A stretch of lines is gone, and something else stands there."""
    begin, stop = index % 24, index % 24 + length % 8 + 1
    return lambda text: [*text[:begin], "\ufffd\ufffd\n", *text[stop:]]


def twice(index: int, _: int) -> Damage:
    return lambda text: [
        line for n, item in enumerate(text) for line in [item] * (1 + (n == index % len(text)))
    ]


def moved(index: int, to: int) -> Damage:
    def move(text: list[str]) -> list[str]:
        rest = [*text]
        line = rest.pop(index % len(rest))
        rest.insert(to % (len(rest) + 1), line)
        return rest

    return move


def cut(index: int, length: int) -> Damage:
    return lambda text: [*text[: index % len(text)], text[index % len(text)][:length]]


def damages(*kinds: Callable[[int, int], Damage]) -> st.SearchStrategy[Damage]:
    """One of these kinds, somewhere."""
    return st.builds(
        lambda kind, a, b: kind(a, b),
        st.sampled_from(kinds),
        st.integers(0, 99),
        st.integers(0, 40),
    )


DAMAGES = st.tuples(
    st.lists(damages(cut), max_size=1), st.lists(damages(torn, blotted, twice, moved), max_size=3)
).map(lambda both: [*both[0], *both[1]])
"""Who cuts a file whose lines were moved takes lines out of its middle without a trace, which nobody can notice."""


@pytest.mark.parametrize("workload", FOREIGN)
def test_a_correct_system_is_never_convicted(workload: str) -> None:
    @given(lines(workload), DAMAGES)
    def law(text: list[str], damages: list[Damage]) -> None:
        for damage in damages:
            text = damage(text)
        try:
            outcome = judged("".join(text), workload)
        except HistoryError:
            return
        assert outcome.verdict is not Verdict.INVALID, outcome
        assert not outcome.broken()

    law()


def by_one_process(text: list[str], workload: str) -> str:
    """The history of one client that does all of it, several things at once. A consumer polls by itself."""
    is_whole = workload != "kafka"
    return "".join(
        re.sub(r":process \d", ":process 9", line) if is_whole or ":f :send" in line else line
        for line in text
    )


@pytest.mark.parametrize("workload", FOREIGN)
def test_a_client_with_several_operations_under_way_convicts_nobody(workload: str) -> None:
    @given(lines(workload), st.lists(damages(torn, blotted, twice, moved, cut), max_size=1))
    def law(text: list[str], damages: list[Damage]) -> None:
        for damage in damages:
            text = damage(text)
        try:
            outcome = judged(by_one_process(text, workload), workload)
        except HistoryError:
            return
        assert outcome.verdict is not Verdict.INVALID, outcome
        assert not outcome.broken()

    law()


def test_a_send_whose_invocation_cannot_be_read_has_no_place_in_its_producer_s_order() -> None:
    """Two sends overlapped. The second's invocation is lost, and it completed last, with the lower offset."""
    begun = "{:type :invoke, :process 9, :f :send, :value [[:send 0 0]], :time 10}\n"
    others = [
        f"{{:type :{type_}, :process 9, :f :send, :value [[:send 0 {value}]], :time {time}}}\n"
        for type_, value, time in [("ok", "[1 0]", 30), ("ok", "[0 1]", 40)]
    ]
    polled = [
        "{:type :invoke, :process 1, :f :poll, :value [[:poll]], :time 50}\n",
        "{:type :ok, :process 1, :f :poll, :value [[:poll {0 [[0 1] [1 0]]}]], :time 60}\n",
    ]
    lost = "".join([begun, "{\n", *others, *polled])
    assert judged(lost, "kafka").verdict is Verdict.UNKNOWN
    complete = "".join([begun, *others, *polled])
    assert judged(complete, "kafka").verdict is Verdict.INVALID


ADDED = (("invoke", 0, "add", "1"), ("ok", 0, "add", "1"))
ENQUEUED = (("invoke", 0, "enqueue", "1"), ("ok", 0, "enqueue", "1"))
SENT = (
    ("invoke", 0, "send", "[[:send 0 5]]"),
    ("ok", 0, "send", "[[:send 0 [0 5]]]"),
    ("invoke", 0, "send", "[[:send 0 6]]"),
    ("ok", 0, "send", "[[:send 0 [1 6]]]"),
    ("invoke", 1, "assign", "[0]"),
    ("ok", 1, "assign", "[0]"),
)
POLL = ("invoke", 1, "poll", "[[:poll]]")
LOST_UNTIL_LATER = {
    "set-lost": (
        "set",
        (*ADDED, ("invoke", 1, "read", "nil"), ("ok", 1, "read", "[1]")),
        (("invoke", 1, "read", "nil"), ("ok", 1, "read", "[]")),
        (("invoke", 1, "read", "nil"), ("ok", 1, "read", "[1]")),
    ),
    "queue-lost": (
        "queue",
        ENQUEUED,
        (("invoke", 1, "drain", "nil"), ("ok", 1, "drain", "[]")),
        (("invoke", 1, "dequeue", "nil"), ("ok", 1, "dequeue", "1")),
    ),
    "lost-write": (
        "kafka",
        SENT,
        (POLL, ("ok", 1, "poll", "[[:poll {0 [[1 6]]}]]")),
        (("invoke", 2, "poll", "[[:poll]]"), ("ok", 2, "poll", "[[:poll {0 [[0 5] [1 6]]}]]")),
    ),
    "unseen": (
        "kafka",
        SENT,
        (
            *(POLL, ("ok", 1, "poll", "[[:poll {0 [[0 5]]}]]")),
            *(POLL, ("ok", 1, "poll", "[[:poll {}]]")),
        ),
        (POLL, ("ok", 1, "poll", "[[:poll {0 [[1 6]]}]]")),
    ),
}
"""By property: its workload, how the history begins, what looks like a loss, and an operation that explains it."""


@pytest.mark.parametrize("name", LOST_UNTIL_LATER)
def test_what_an_operation_after_a_cut_end_explains_is_unknown(name: str) -> None:
    workload, before, loss, later = LOST_UNTIL_LATER[name]
    lines = [
        f"{{:type :{kind}, :process {process}, :f :{f}, :value {value}, :index {index}}}\n"
        for index, (kind, process, f, value) in enumerate((*before, *loss, *later))
    ]
    beginning = "".join(lines[: len(before) + len(loss)])
    assert judged(beginning, workload).verdict is Verdict.INVALID
    assert judged("".join(lines), workload).verdict is Verdict.VALID
    for cut_line in ("{:type :ok, :pro", "{:type :ok, :pro}\n"):
        outcome = judged(beginning + cut_line, workload)
        assert outcome.verdict is Verdict.UNKNOWN
        (lost,) = (result for result in outcome.results if result.property == name)
        assert lost.verdict is Verdict.UNKNOWN
        assert lost.findings[0].sentence.endswith(EXPLICABLE)
