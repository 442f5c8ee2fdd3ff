"""Histories in the shapes that Jepsen, Knossos and Elle use, with the verdicts that those give, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.cli.app import call

EXIT = {"valid": 0, "invalid": 1, "unknown": 2}


def says(*operations: str) -> str:
    """A history of these operations: ``PROCESS TYPE F VALUE`` each, a line each, as Jepsen prints them."""
    lines = []
    for index, operation in enumerate(operations):
        process, kind, f, value = operation.split(" ", 3)
        lines.append(
            f"{{:type :{kind}, :f :{f}, :value {value}, :time {index * 1000}, :process {process}, :index {index}}}\n"
        )
    return "".join(lines)


def txns(*values: str) -> str:
    """Transactions one after the other, each by a process of its own; ``!`` before one that failed."""
    operations = []
    for process, value in enumerate(values):
        completed = value.removeprefix("!")
        asked = "[" + " ".join(_asked(micro) for micro in completed[1:-1].split("] [")) + "]"
        kind = "fail" if value.startswith("!") else "ok"
        operations += [f"{process} invoke txn {asked}", f"{process} {kind} txn {completed}"]
    return says(*operations)


def _asked(micro: str) -> str:
    """A micro-operation as it is invoked: a read does not know yet."""
    words = micro.strip("[]").split(" ")
    return f"[:r {words[1]} nil]" if words[0] == ":r" else f"[{' '.join(words[:3])}]"


def at_once(*values: str) -> str:
    """Transactions that all overlap."""
    alone = txns(*values).splitlines()
    interleaved = [*alone[::2], *alone[1::2]]
    return "".join(
        line.split(", :time")[0] + f", :process {index % len(values)}, :index {index}}}\n"
        for index, line in enumerate(interleaved)
    )


HISTORIES = {
    "register: read what was written": (
        "register",
        says("0 invoke write 1", "0 ok write 1", "1 invoke read nil", "1 ok read 1"),
        "valid",
        (),
    ),
    "register: a stale read": (
        "register",
        says(
            *("0 invoke write 1", "0 ok write 1", "0 invoke write 2", "0 ok write 2"),
            *("1 invoke read nil", "1 ok read 1"),
        ),
        "invalid",
        ("linearizable-register",),
    ),
    "register: a write that crashed may be seen, or not": (
        "register",
        says(
            *("0 invoke write 1", "0 info write 1", "1 invoke read nil", "1 ok read nil"),
            *("2 invoke read nil", "2 ok read 1"),
        ),
        "valid",
        (),
    ),
    "register: keys of jepsen.independent are registers of their own": (
        "register",
        says(
            *("0 invoke write [:x 1]", "0 ok write [:x 1]"),
            *("1 invoke read [:y nil]", "1 ok read [:y nil]"),
            *("1 invoke read [:x nil]", "1 ok read [:x 1]"),
        ),
        "valid",
        (),
    ),
    "cas: what Knossos's README begins with": (
        "cas-register",
        says(
            *("0 invoke write 0", "0 ok write 0", "1 invoke cas [0 4]", "2 invoke read nil"),
            *("1 ok cas [0 4]", "2 ok read 4", "0 invoke cas [0 2]", "0 fail cas [0 2]"),
        ),
        "valid",
        (),
    ),
    "cas: two that cannot both have succeeded": (
        "cas-register",
        says(
            *("0 invoke write 0", "0 ok write 0", "1 invoke cas [0 1]", "2 invoke cas [0 2]"),
            *("1 ok cas [0 1]", "2 ok cas [0 2]"),
        ),
        "invalid",
        ("linearizable-cas-register",),
    ),
    "mutex: held by two at once": (
        "mutex",
        says(
            *("0 invoke acquire nil", "0 ok acquire nil", "1 invoke acquire nil"),
            "1 ok acquire nil",
        ),
        "invalid",
        ("linearizable-mutex",),
    ),
    "set: an element that was acknowledged and is gone": (
        "set",
        says(
            *("0 invoke add 0", "0 ok add 0", "0 invoke add 1", "0 ok add 1"),
            *("1 invoke read nil", "1 ok read #{0 1}", "2 invoke read nil", "2 ok read #{1}"),
        ),
        "invalid",
        ("set-lost",),
    ),
    "set: an element from nowhere": (
        "set",
        says("0 invoke add 0", "0 ok add 0", "1 invoke read nil", "1 ok read #{0 7}"),
        "invalid",
        ("set-unexpected",),
    ),
    "queue: everything comes out once": (
        "queue",
        says(
            *("0 invoke enqueue 1", "0 ok enqueue 1", "0 invoke enqueue 2", "0 ok enqueue 2"),
            *("1 invoke dequeue nil", "1 ok dequeue 2", "1 invoke drain nil", "1 ok drain [1]"),
        ),
        "valid",
        (),
    ),
    "queue: lost": (
        "queue",
        says("0 invoke enqueue 1", "0 ok enqueue 1", "1 invoke drain nil", "1 ok drain []"),
        "invalid",
        ("queue-lost",),
    ),
    "list-append: one after the other": (
        "list-append",
        txns("[[:append 1 1]]", "[[:r 1 [1]] [:append 1 2]]", "[[:r 1 [1 2]]]"),
        "valid",
        (),
    ),
    "list-append: G1a, an aborted read": (
        "list-append",
        txns("![[:append :x 1]]", "[[:r :x [1]]]"),
        "invalid",
        ("G1a",),
    ),
    "list-append: G1b, an intermediate read": (
        "list-append",
        txns("[[:append 1 1] [:append 1 2]]", "[[:r 1 [1]]]", "[[:r 1 [1 2]]]"),
        "invalid",
        ("G1b",),
    ),
    "list-append: G1c, each read what the other appended": (
        "list-append",
        at_once("[[:append 1 1] [:r 2 [1]]]", "[[:append 2 1] [:r 1 [1]]]"),
        "invalid",
        ("G1c",),
    ),
    "list-append: G-single, half of a transaction was seen": (
        "list-append",
        at_once("[[:append 1 1] [:append 2 1]]", "[[:r 1 [1]] [:r 2 nil]]", "[[:r 2 [1]]]"),
        "invalid",
        ("G-single",),
    ),
    "list-append: G2-item, a write skew": (
        "list-append",
        at_once(
            "[[:r 1 nil] [:append 2 1]]", "[[:r 2 nil] [:append 1 1]]", "[[:r 1 [1]] [:r 2 [1]]]"
        ),
        "invalid",
        ("G2-item",),
    ),
    "list-append: reads that disagree about the order": (
        "list-append",
        at_once("[[:append 1 1]]", "[[:append 1 2]]", "[[:r 1 [1 2]]]", "[[:r 1 [2 1]]]"),
        "invalid",
        ("incompatible-order",),
    ),
    "list-append: a transaction does not see its own append": (
        "list-append",
        txns("[[:append 1 1] [:r 1 nil]]"),
        "invalid",
        ("internal",),
    ),
    "rw-register: one after the other": (
        "rw-register",
        txns("[[:w 1 1]]", "[[:r 1 1] [:w 1 2]]", "[[:r 1 2]]"),
        "valid",
        (),
    ),
    "rw-register: G1a": ("rw-register", txns("![[:w 1 1]]", "[[:r 1 1]]"), "invalid", ("G1a",)),
    "rw-register: G1c": (
        "rw-register",
        at_once("[[:w 1 1] [:r 2 1]]", "[[:w 2 1] [:r 1 1]]"),
        "invalid",
        ("G1c",),
    ),
    "rw-register: internal": (
        "rw-register",
        txns("[[:w 1 1] [:r 1 2]]", "[[:w 1 2]]"),
        "invalid",
        ("internal",),
    ),
    "kafka: sends and polls, gaps where transactions ended": (
        "kafka",
        says(
            *("1 invoke assign [0]", "1 ok assign [0]"),
            *("0 invoke txn [[:send 0 1] [:poll]]", "0 ok txn [[:send 0 [0 1]] [:poll {}]]"),
            *("0 invoke send [[:send 0 2]]", "0 ok send [[:send 0 [2 2]]]"),
            *("1 invoke poll [[:poll]]", "1 ok poll [[:poll {0 [[0 1] [2 2]]}]]"),
            "2 invoke crash nil",
            "2 info crash nil",
        ),
        "valid",
        (),
    ),
    "kafka: a lost write": (
        "kafka",
        says(
            *("0 invoke send [[:send :x :a]]", "0 ok send [[:send :x [0 :a]]]"),
            *("0 invoke send [[:send :x :b]]", "0 ok send [[:send :x [1 :b]]]"),
            *("1 invoke poll [[:poll]]", "1 ok poll [[:poll {:x [[1 :b]]}]]"),
        ),
        "invalid",
        ("lost-write",),
    ),
    "kafka: an offset that is not the same for all": (
        "kafka",
        says(
            *("0 invoke poll [[:poll]]", "0 ok poll [[:poll {0 [[0 1]]}]]"),
            *("1 invoke poll [[:poll]]", "1 ok poll [[:poll {0 [[0 2]]}]]"),
        ),
        "invalid",
        ("inconsistent-offset",),
    ),
    "kafka: an aborted read": (
        "kafka",
        says(
            *("0 invoke send [[:send 0 1]]", "0 fail send [[:send 0 1]]"),
            *("1 invoke poll [[:poll]]", "1 ok poll [[:poll {0 [[0 1]]}]]"),
        ),
        "invalid",
        ("dirty-read",),
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_peers_history(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload, text, verdict, properties = HISTORIES[name]
    monkeypatch.chdir(tmp_path)
    Path("history.edn").write_text(text)
    code = call(["check", "history.edn", "--workload", workload, "--engine", "inline", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["outcome"]["problems"] == []
    broken = [
        result["property"]
        for result in said["outcome"]["results"]
        if result["verdict"] == "invalid"
    ]
    assert set(properties) <= set(broken), said["outcome"]["results"]
    assert (said["verdict"], bool(broken)) == (verdict, verdict == "invalid")
    assert code == EXIT[verdict]


def test_a_short_form_of_elles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No functions, no invocations, no times: what it proves all the same, and what is missing."""
    monkeypatch.chdir(tmp_path)
    Path("history.edn").write_text(
        "[{:process 0, :type :ok, :value [[:append :x 1] [:r :y [1]]]}\n"
        " {:process 1, :type :ok, :value [[:append :x 2] [:append :y 1]]}\n"
        " {:process 2, :type :ok, :value [[:r :x [1 2]]]}]\n"
    )
    command = ["check", "history.edn", "--workload", "list-append", "--engine", "inline", "--json"]
    assert call(command) == EXIT["invalid"]
    said = json.loads(capsys.readouterr().out)["outcome"]
    assert said["problems"] == []
    (result,) = [each for each in said["results"] if each["property"] == "G1c"]
    assert result["verdict"] == "invalid"
    assert ":x" in result["findings"][0]["sentence"] + " ".join(result["findings"][0]["steps"])
