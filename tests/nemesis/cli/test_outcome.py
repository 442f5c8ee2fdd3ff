"""What the console says about an outcome: what is broken first, families, reasons, colours, narrow terminals."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from nemesis.checkers import CHECKERS, FOREIGN
from nemesis.checkers.foreign import decided_in
from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.cli import console, pasted
from nemesis.cli.app import call
from nemesis.cli.families import FAMILIES, OTHERS, family_of, module_of
from nemesis.cli.outcome_lines import lines, verdict_text
from nemesis.history.run_directory import RunDirectory, RunInfo

ESCAPE = "\x1b"


def result(name: str, verdict: Verdict = Verdict.VALID, *findings: Finding) -> Result:
    checked = 0 if verdict is Verdict.UNKNOWN and not findings else 7
    return Result(
        property=name,
        verdict=verdict,
        checked=checked,
        findings=findings,
        finding_count=len(findings),
    )


def finding(name: str, verdict: Verdict, sentence: str) -> Finding:
    return Finding(
        property=name, verdict=verdict, key="t-0", sentence=sentence, steps=("first", "second")
    )


def outcome(verdict: Verdict, *results: Result, problems: tuple[str, ...] = ()) -> Outcome:
    return Outcome(
        verdict=verdict, results=results, events=9, engine="inline", seconds=0.1, problems=problems
    )


def printed(judged: Outcome, *, is_verbose: bool = False) -> list[str]:
    return [line.plain for line in lines(judged, is_verbose=is_verbose)]


VALID = outcome(Verdict.VALID, *(result(name) for name in CHECKERS))


def test_every_property_belongs_to_a_family() -> None:
    decided = [*CHECKERS.values(), *(item for name in FOREIGN for item in decided_in(name))]
    assert [known.name for known in decided if family_of(known.name) == OTHERS] == []
    named = {module for modules in FAMILIES.values() for module in modules}
    assert named == {module_of(known) for known in decided}


def test_a_valid_run_has_a_line_for_each_family() -> None:
    families = list(dict.fromkeys(family_of(name) for name in CHECKERS))
    shown = printed(VALID)
    assert [line.split()[1] for line in shown] == [name for name in FAMILIES if name in families]
    assert sum(int(line.split()[2]) for line in shown) == len(CHECKERS)
    assert max(map(len, shown)) <= 40


def test_verbose_has_a_line_for_each_property() -> None:
    assert [line.split()[1] for line in printed(VALID, is_verbose=True)] == list(CHECKERS)


def test_verbose_states_how_much_a_property_had_to_judge() -> None:
    numbers = {"fenced_producers": 0.0, "requests_of_fenced_producers": 12_000.0}
    counted = msgspec.structs.replace(result("fenced-producer"), numbers=numbers)
    shown = printed(outcome(Verdict.VALID, counted), is_verbose=True)
    assert shown[1].strip() == "fenced producers: 0, requests of fenced producers: 12,000"


def test_one_has_the_singular() -> None:
    once = msgspec.structs.replace(result("hw-bounded"), checked=1, unit="reads")
    shown = printed(outcome(Verdict.VALID, once), is_verbose=True)
    assert shown[0].split() == ["valid", "hw-bounded", "1", "read", "checked"]


@pytest.mark.parametrize("is_verbose", [False, True])
def test_what_is_broken_comes_first_with_its_steps(is_verbose: bool) -> None:
    broken = [
        finding("unseen", Verdict.INVALID, f"Record {number} was never read.")
        for number in range(5, 10)
    ]
    judged = outcome(
        Verdict.INVALID, result("hw-bounded"), result("unseen", Verdict.INVALID, *broken)
    )
    shown = printed(judged, is_verbose=is_verbose)
    assert shown[0].split() == ["invalid", "unseen", "7", "events", "checked,", "5", "findings"]
    assert shown[1].strip() == "t-0: Record 5 was never read."
    assert [line.strip() for line in shown[2:4]] == ["1. first", "2. second"]
    assert [line.strip() for line in shown[4:6]] == [
        f"t-0: Record {n} was never read." for n in (6, 7)
    ]
    assert shown[6].strip() == "2 more: see the report"
    assert shown[7].split()[:2] == ["valid", "hw-bounded" if is_verbose else "replication"]
    assert verdict_text(judged).plain == "invalid"


def test_equal_findings_are_printed_once() -> None:
    again = finding("unseen", Verdict.INVALID, "Record 5 was never read.")
    other = finding("unseen", Verdict.INVALID, "Record 6 was never read.")
    shown = printed(
        outcome(Verdict.INVALID, result("unseen", Verdict.INVALID, again, other, again, again))
    )
    assert [line.strip() for line in shown if "Record" in line] == [
        "t-0: Record 5 was never read. (3 times)",
        "t-0: Record 6 was never read.",
    ]
    assert not any("more: see the report" in line for line in shown)


def test_a_sentence_that_begins_with_its_subject_does_not_repeat_it() -> None:
    missing = Finding(
        property="fault-effect",
        verdict=Verdict.INVALID,
        key="kill on broker-1",
        sentence="kill on broker-1 had no effect.",
    )
    judged = outcome(Verdict.INVALID, result("fault-effect", Verdict.INVALID, missing))
    assert [line.strip() for line in printed(judged) if "broker-1" in line] == [missing.sentence]


def test_a_family_names_what_is_broken_in_it() -> None:
    broken = finding("unseen", Verdict.INVALID, "Record 5 was never read.")
    shown = printed(
        outcome(Verdict.INVALID, result("lost-write"), result("unseen", Verdict.INVALID, broken))
    )
    assert " ".join(shown[-1].split()) == "invalid clients 1 of 2 valid; broken: unseen"


def test_a_family_is_as_bad_as_its_worst_property() -> None:
    judged = outcome(
        Verdict.UNKNOWN, result("hw-bounded"), result("hw-grows", Verdict.UNKNOWN), result("unseen")
    )
    shown = printed(judged)
    assert shown[0].split() == ["unknown", "replication", "1", "of", "2", "valid"]
    assert shown[1].strip() == "hw-grows: expected events to judge, got none"
    assert shown[2].split()[:2] == ["valid", "clients"]


@pytest.mark.parametrize(
    ("results", "problems", "reason"),
    [
        ([result("hw-grows", Verdict.UNKNOWN)], (), "hw-grows: expected events to judge, got none"),
        (
            [
                result(
                    "fault-effect",
                    Verdict.UNKNOWN,
                    finding("fault-effect", Verdict.UNKNOWN, "It had no measured effect."),
                )
            ],
            (),
            "fault-effect: t-0: It had no measured effect",
        ),
        ([result("unseen")], ("broker-1.jsonl is missing",), "broker-1.jsonl is missing"),
        (
            [result("hw-grows", Verdict.UNKNOWN), result("unseen", Verdict.UNKNOWN)],
            ("broker-1.jsonl is missing",),
            "broker-1.jsonl is missing (and 2 more reasons)",
        ),
        ([], (), "no property was judged"),
    ],
)
def test_unknown_states_its_reason(
    results: list[Result], problems: tuple[str, ...], reason: str
) -> None:
    judged = outcome(Verdict.UNKNOWN, *results, problems=problems)
    assert verdict_text(judged).plain == f"unknown: {reason}"


def test_forty_columns_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    narrow = Console(file=shown, width=40, force_terminal=True, highlight=False, markup=False)
    monkeypatch.setattr(console, "out", narrow)
    broken = finding(
        "unseen", Verdict.INVALID, "Record 5, which was acknowledged, was never read. " * 3
    )
    judged = outcome(Verdict.INVALID, *VALID.results, result("unseen", Verdict.INVALID, broken))
    for line in lines(judged, is_verbose=False):
        console.say(line)
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.getvalue())
    assert max(map(len, text.splitlines())) <= 40
    assert text.split() == " ".join(printed(judged)).split()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    store = tmp_path_factory.mktemp("a 'run' of $mine") / "store"
    simulated = ["--runtime", "simulation", "--time-limit", "15", "--seed", "1"]
    assert call(["run", "topics", *simulated, "--store", str(store)]) in {0, 2}
    return RunDirectory.open(store / "latest")


def report_on_a_terminal(run: RunDirectory, **environment: str) -> str:
    """Return what ``nemesis report`` writes to a terminal."""
    ours, theirs_end = pty.openpty()
    own = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS"}}
    reported = subprocess.run(
        [sys.executable, "-m", "nemesis", "report", str(run.path)],
        stdout=theirs_end,
        env={**own, "TERM": "xterm", **environment},
        timeout=120,
        check=False,
    )
    os.close(theirs_end)
    written = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the terminal's other end is closed
            break
        written += part
    os.close(ours)
    assert reported.returncode in {0, 2}
    return written.decode()


def test_a_terminal_gets_colours(run: RunDirectory) -> None:
    assert f"{ESCAPE}[32mvalid" in report_on_a_terminal(run)


def test_no_color_is_respected(run: RunDirectory) -> None:
    assert ESCAPE not in report_on_a_terminal(run, NO_COLOR="1")


def test_a_pipe_gets_no_escape_code(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    call(["report", str(run.path), "-v"])
    assert ESCAPE not in capsys.readouterr().out


def test_the_printed_command_replays_when_it_is_pasted(
    run: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    call(["report", str(run.path)])
    command = capsys.readouterr().out.splitlines()[-1].partition("; replay: ")[2]
    pasted_line = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )
    assert pasted_line.returncode == 0, pasted_line.stderr
    assert pasted_line.stdout.startswith("identical: ")


@pytest.mark.parametrize(
    ("stored", "verb"),
    [
        ("nemesis run topics --seed 1 --plan 'my store/plan.yaml'", "replay"),
        ("nemesis check 'my store/history'", "check"),
        ("", "replay"),
    ],
)
def test_a_run_is_repeated_and_a_history_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str, verb: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pasted, "_program", lambda: ["nemesis"])
    run = RunDirectory.create(
        tmp_path / "my store", RunInfo(scenario="topics", seed=1, replay=stored)
    )
    again = shlex.join(["nemesis", verb, str(run.path.relative_to(tmp_path))])
    assert pasted.replay_of(run) == again


@pytest.mark.parametrize(
    ("is_on_path", "called", "start"),
    [
        (True, "bin/nemesis", ["nemesis"]),
        (True, "other/nemesis", ["other/nemesis"]),
        (True, "/x/nemesis/__main__.py", ["nemesis"]),
        (False, "bin/nemesis", ["bin/nemesis"]),
        (False, "/x/nemesis/__main__.py", [sys.executable, "-m", "nemesis"]),
    ],
)
def test_a_command_starts_the_program_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on_path: bool, called: str, start: list[str]
) -> None:
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "nemesis").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin") if is_on_path else "/nowhere")
    monkeypatch.setattr(sys, "argv", [called])
    assert pasted.command(["replay", "x y"]) == shlex.join([*start, "replay", "x y"])
