"""Small histories that follow from the definitions of other tools, each with the verdict that the definition gives.

None is copied: each states a promise of a model or its smallest violation. ``foreign_scoreboard`` counts how many of
them nemesis judges as expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

Operation = tuple[int, str, str, str]
"""Process, function, and the value of its invocation and of its completion, as EDN."""
VALID, INVALID = "valid", "invalid"
UNKNOWN = "unknown"
"""Neither is proved."""


@dataclass(frozen=True, slots=True)
class ForeignCase:
    source: str
    workload: str
    name: str
    text: str
    expected: str
    model: str | None = None
    initial: str | None = None


def line(process: int, kind: str, f: str, value: str) -> str:
    return f"{{:process {process} :type :{kind} :f :{f} :value {value}}}\n"


def sequence(*operations: Operation) -> str:
    """Operations one after the other."""
    return "".join(
        line(process, "invoke", f, asked) + line(process, "ok", f, answer)
        for process, f, asked, answer in operations
    )


def together(*operations: Operation) -> str:
    """Operations that are all under way at the same time."""
    begun = [line(process, "invoke", f, asked) for process, f, asked, _ in operations]
    ended = [line(process, "ok", f, answer) for process, f, _, answer in operations]
    return "".join(begun + ended)


def doubtful(process: int, f: str, value: str) -> str:
    return line(process, "invoke", f, value) + line(process, "info", f, value)


def write(value: int, process: int = 0) -> Operation:
    return process, "write", str(value), str(value)


def read(value: object, process: int = 1) -> Operation:
    return process, "read", "nil", str(value)


def txn(process: int, *micros: str) -> Operation:
    """A transaction: ``w x 1``, ``append x 1``, ``r x [1]``."""
    asked, answer = [], []
    for micro in micros:
        f, key, value = micro.split(" ", 2)
        is_read = f in ("r", "read")
        asked.append(f"[:{f} :{key} {'nil' if is_read else value}]")
        answer.append(f"[:{f} :{key} {value}]")
    return process, "txn", f"[{' '.join(asked)}]", f"[{' '.join(answer)}]"


def by_key(f: str, key: str, text: str, process: int = 0) -> str:
    """A call of a key-value store, in the form of Porcupine's data."""
    asked = "nil" if f == "get" else f'"{text}"'
    ends = ((":invoke", asked), (":ok", f'"{text}"'))
    return "".join(
        f'{{:process {process}, :type {kind}, :f :{f}, :key "{key}", :value {value}}}\n'
        for kind, value in ends
    )


def _registers() -> Iterator[ForeignCase]:
    def case(name: str, text: str, expected: str, workload: str = "register") -> ForeignCase:
        return ForeignCase("Knossos", workload, name, text, expected)

    yield case("read of the last write", sequence(write(1), read(1)), VALID)
    yield case("stale read", sequence(write(1), write(2), read(1)), INVALID)
    yield case("read during a write", together(write(1), read(1)), VALID)
    yield case("write in doubt, read later", doubtful(0, "write", "3") + sequence(read(3)), VALID)
    new_old = sequence(write(1)) + line(0, "invoke", "write", "2")
    yield case("new value, then the old one", new_old + sequence(read(2), read(1)), INVALID)
    cas = (0, "cas", "[1 2]", "[1 2]")
    yield case("cas of the value", sequence(write(1), cas, read(2)), VALID, "cas-register")
    yield case("cas of another value", sequence(write(3), cas), INVALID, "cas-register")
    acquire, release = (0, "acquire", "nil", "nil"), (0, "release", "nil", "nil")
    yield case("acquire, release, acquire", sequence(acquire, release, acquire), VALID, "mutex")
    yield case("acquired twice", sequence(acquire, (1, "acquire", "nil", "nil")), INVALID, "mutex")
    both = sequence(txn(0, "write x 1", "write y 1"), txn(0, "write x 2", "write y 2"))
    multi = "multi-register"
    yield case("both registers", both + sequence(txn(1, "read x 2", "read y 2")), VALID, multi)
    yield case(
        "half a transaction", both + sequence(txn(1, "read x 2", "read y 1")), INVALID, multi
    )


def _porcupine() -> Iterator[ForeignCase]:
    appended = by_key("append", "4", "x") + by_key("append", "4", "y")
    for name, text, expected in (
        ("appends in sequence", appended + by_key("get", "4", "xy"), VALID),
        ("appends swapped", appended + by_key("get", "4", "yx"), INVALID),
        ("lost append", appended + by_key("get", "4", "y"), INVALID),
        ("put replaces", appended + by_key("put", "4", "z") + by_key("get", "4", "z"), VALID),
        ("absent key", appended + by_key("get", "5", ""), VALID),
    ):
        yield ForeignCase("Porcupine", "key-value", name, text, expected)


def _elle() -> Iterator[ForeignCase]:
    def case(
        workload: str, name: str, text: str, expected: str, model: str | None = None
    ) -> ForeignCase:
        return ForeignCase("Elle", workload, name, text, expected, model)

    lists = "list-append"
    yield case(lists, "append and read", sequence(txn(0, "append x 1"), txn(1, "r x [1]")), VALID)
    lost = sequence(txn(0, "append x 1"), txn(0, "append x 2"), txn(1, "r x [1]"))
    yield case(lists, "stale read in real time", lost, INVALID)
    yield case(lists, "stale read", lost, VALID, "serializable")
    skew = together(txn(0, "r x []", "append y 1"), txn(1, "r y []", "append x 1"))
    ends = sequence(txn(2, "r x [1]", "r y [1]"))
    yield case(lists, "write skew", skew + ends, INVALID, "serializable")
    yield case(lists, "write skew", skew + ends, VALID, "snapshot-isolation")
    circular = together(txn(0, "append x 1", "r y [1]"), txn(1, "append y 1", "r x [1]"))
    yield case(lists, "G1c", circular, INVALID, "read-committed")
    registers = "rw-register"
    fractured = sequence(txn(0, "w x 1", "w y 1")) + together(txn(1, "r x 1", "r y nil"))
    yield case(registers, "fractured read", fractured, INVALID, "read-atomic")
    yield case(registers, "fractured read", fractured, VALID, "read-committed")
    keys = "monotonic-keys"
    rising = sequence(read("{:x 0 :y 0}"), read("{:x 1 :y 0}"), read("{:x 1 :y 1}"))
    yield case(keys, "rising keys", rising, VALID)
    yield case(keys, "crossing keys", sequence(read("{:x 0 :y 1}"), read("{:x 1 :y 0}")), INVALID)


def _jepsen() -> Iterator[ForeignCase]:
    def case(workload: str, name: str, text: str, expected: str) -> ForeignCase:
        return ForeignCase("Jepsen", workload, name, text, expected)

    def call(f: str, value: object) -> Operation:
        return 0, f, str(value), str(value)

    yield case("set", "read of all", sequence(call("add", 1), read("#{1}")), VALID)
    yield case("set", "lost element", sequence(call("add", 1), read("#{}")), INVALID)
    yield case("set", "unexpected element", sequence(call("add", 1), read("#{1 2}")), INVALID)
    added = sequence(call("add", 1), read("#{1}"))
    absent = read("#{}")
    yield case("set", "seen, then absent", added + sequence(absent), INVALID)
    flutter = added + sequence(absent, read("#{1}"))
    yield case("set", "seen, absent, seen", flutter, VALID)
    meanwhile = added + together(read("#{1}"), read("#{}", process=2))
    yield case("set", "seen while absent", meanwhile, UNKNOWN)
    unread = added + sequence(call("add", 2))
    yield case("set", "stable and never read", unread, VALID)
    yield case("set", "never read", sequence(call("add", 1)), UNKNOWN)
    yield case("linearizable-set", "stable and never read", unread, VALID)
    yield case("linearizable-set", "seen, then seen", added + sequence(read("#{1}")), VALID)
    yield case("linearizable-set", "seen, absent, seen", flutter, INVALID)
    yield case("linearizable-set", "seen while absent", meanwhile, INVALID)
    queue = sequence(call("enqueue", 1), call("enqueue", 2))
    drain = sequence((1, "drain", "nil", "[2 1]"))
    yield case("queue", "drained", queue + drain, VALID)
    yield case("queue", "lost", queue + sequence((1, "drain", "nil", "[2]")), INVALID)
    first, second = (1, "dequeue", "nil", "1"), (1, "dequeue", "nil", "2")
    yield case("fifo-queue", "in sequence", queue + sequence(first, second), VALID)
    yield case("queue", "not drained", queue + sequence(first), UNKNOWN)
    yield case("fifo-queue", "still there", queue + sequence(first), VALID)
    yield case("fifo-queue", "overtaken", queue + sequence(second, first), INVALID)
    yield case("counter", "between the bounds", sequence(call("add", 1), read(1)), VALID)
    yield case("counter", "too little", sequence(call("add", 1), read(0)), INVALID)
    ids = [(0, "generate", "nil", str(number)) for number in (1, 2, 1)]
    yield case("unique-ids", "different", sequence(*ids[:2]), VALID)
    yield case("unique-ids", "repeated", sequence(*ids), INVALID)
    yield case("bank", "same total", sequence(read("{0 5, 1 5}"), read("{0 4, 1 6}")), VALID)
    yield case("bank", "other total", sequence(read("{0 5, 1 5}"), read("{0 4, 1 5}")), INVALID)
    forked = sequence(txn(0, "w x 1")) + sequence(txn(0, "w y 1"))
    agree = sequence(txn(1, "r x 1", "r y nil"), txn(1, "r x 1", "r y 1"))
    fork = together(txn(1, "r x 1", "r y nil"), txn(2, "r x nil", "r y 1"))
    yield case("long-fork", "reads agree", forked + agree, VALID)
    yield case("long-fork", "reads contradict each other", forked + fork, INVALID)
    inserts = sequence(write(1), write(2))
    yield case("causal-reverse", "with the older value", inserts + sequence(read("[1 2]")), VALID)
    yield case("causal-reverse", "without it", inserts + sequence(read("[2]")), INVALID)
    insert = (0, "insert", "[7 [1 nil]]", "[7 [1 nil]]")
    other = (1, "insert", "[7 [nil 2]]", "[7 [nil 2]]")
    yield case("predicate-inserts", "one insert", sequence(insert), VALID)
    yield case("predicate-inserts", "two inserts", together(insert, other), INVALID)


def _maelstrom() -> Iterator[ForeignCase]:
    def case(workload: str, name: str, text: str, expected: str) -> ForeignCase:
        return ForeignCase("Maelstrom", workload, name, text, expected)

    def add(amount: int) -> Operation:
        return 0, "add", str(amount), str(amount)

    def final(value: int) -> str:
        marked = ":f :read :final? true"
        return sequence(read(value)).replace(":f :read", marked)

    grow, change = "g-counter", "pn-counter"
    lagging = sequence(add(2), read(0))
    yield case(grow, "late, then all", lagging + final(2), VALID)
    yield case(grow, "no final read", lagging, UNKNOWN)
    yield case(grow, "part of an add", sequence(add(2), read(1)) + final(2), INVALID)
    yield case(grow, "lost add", sequence(add(2)) + final(0), INVALID)
    yield case(grow, "decrement", sequence(add(-2)) + final(-2), UNKNOWN)
    yield case(grow, "add in doubt, absent", doubtful(0, "add", "2") + final(0), VALID)
    yield case(change, "decrement", sequence(add(-2)) + final(-2), VALID)
    yield case(change, "decrement counted twice", sequence(add(-2)) + final(-4), INVALID)
    either = sequence(add(1)) + doubtful(0, "add", "-4")
    yield case(change, "add in doubt, differently", either + final(1) + final(-3), VALID)
    yield case(change, "part of an add in doubt", either + final(-1), INVALID)


def _dbcop() -> Iterator[ForeignCase]:
    skew = "[x:=1 y:=1]\n---\n[x==1 y==1 x:=2]\n---\n[x==1 y==1 y:=2]\n---\n[x==2 y==2]\n"
    stale = "[x:=1] [x==?]\n"
    lost = "[x:=1]\n---\n[x==1 x:=2]\n---\n[x==1 x:=3]\n"
    for name, text, expected, model in (
        ("write skew", skew, INVALID, "serializable"),
        ("write skew", skew, VALID, "snapshot-isolation"),
        ("own write not read", stale, INVALID, "strong-session-serializable"),
        ("lost update", lost, INVALID, "snapshot-isolation"),
        ("lost update", lost, VALID, "causal"),
        ("aborted read", "[x:=1]!\n---\n[x==1]\n", INVALID, "read-committed"),
        ("fractured read", "[x:=1 y:=1]\n---\n[x==1 y==?]\n", INVALID, "read-atomic"),
    ):
        yield ForeignCase("dbcop", "rw-register", name, text, expected, model)


_SOURCES: Final[tuple[Callable[[], Iterator[ForeignCase]], ...]] = (
    _registers,
    _porcupine,
    _elle,
    _jepsen,
    _maelstrom,
    _dbcop,
)
CASES: Final = tuple(case for source in _SOURCES for case in source())
