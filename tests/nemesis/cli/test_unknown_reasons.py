"""``nemesis check`` of an external history without a verdict: the last line of the console states the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nemesis.checkers import FOREIGN
from nemesis.cli.app import call
from tests.checkers.foreign_cases import CASES, Operation, read, sequence, write

UNKNOWN: Final = 2
SEND: Final[Operation] = (0, "send", '[[:send 0 "a"]]', '[[:send 0 [0 "a"]]]')
SUBKEYS: Final[tuple[Operation, ...]] = ((0, "write", "1", "1"), (1, "read", "1", '[1 ["1_0"]]'))
TEXTS: Final = {
    "kafka": sequence(SEND),
    "sequential": sequence(*SUBKEYS),
    **{case.workload: case.text for case in CASES if case.source != "dbcop"},
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and the last line of the console."""
    code = call(["check", *arguments])
    return code, capsys.readouterr().out.rstrip().rsplit("\n", 1)[-1]


def reason_in(line: str) -> str:
    """Return the reason in a last line, without what follows the verdict."""
    stated = re.fullmatch(r"unknown(?: \([^)]*\))?: (.+?)(; model: [^;]+)?; report: .+", line)
    assert stated is not None, line
    return stated[1]


def failed(text: str) -> str:
    return text.replace(":type :ok", ":type :fail")


def in_doubt(text: str) -> str:
    return text.replace(":type :ok", ":type :info")


@pytest.mark.parametrize("change", [failed, in_doubt], ids=["failed", "in doubt"])
@pytest.mark.parametrize("workload", FOREIGN)
def test_a_history_in_which_nothing_succeeded(
    workload: str, change: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("history.edn").write_text(change(TEXTS[workload]), encoding="utf-8")
    code, line = checked(capsys, "history.edn", "--workload", workload)
    assert code == UNKNOWN
    assert re.match(r"[\w-]+: expected [\w ]+ to judge, got none|[\w-]+: .+ may ", reason_in(line))


RECORDED: Final = sequence(write(1), read(1))
REASONS: Final = {
    "a torn line": (RECORDED + "{:process 0 :type :inv", "line 5 is cut off"),
    "a completion without its invocation": (
        RECORDED.split("\n", 1)[1],
        "line 1 completes what its process had not invoked",
    ),
    "completions only": (
        "".join(line for line in RECORDED.splitlines(keepends=True) if ":ok" in line),
        "the history has completions only",
    ),
    "a violation that a lost operation explains": (
        sequence(write(1), write(2)) + "{:process 5 :type :inv\n" + sequence(read(1)),
        "line 5 cannot be read",
    ),
    "a probable initial value": (sequence(read(0), write(1), read(1)), "pass --initial 0"),
}


@pytest.mark.parametrize("case", REASONS)
def test_the_reason_is_stated_again_by_a_later_check(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, reason = REASONS[case]
    Path("history.edn").write_text(text, encoding="utf-8")
    code, line = checked(capsys, "history.edn", "--workload", "register")
    assert (code, reason in reason_in(line)) == (UNKNOWN, True), line
    run = line.rsplit("nemesis check ", 1)[-1]
    code, line = checked(capsys, run)
    assert (code, reason in reason_in(line)) == (UNKNOWN, True), line


def test_an_element_that_may_be_lost(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = (
        case.text for case in CASES if (case.workload, case.name) == ("set", "seen while absent")
    )
    Path("history.edn").write_text(text, encoding="utf-8")
    code, line = checked(capsys, "history.edn", "--workload", "set")
    assert code == UNKNOWN
    assert reason_in(line).startswith("set-lost: the object: 1 may be lost from the object")
