"""Hostile inputs, each of which ends in one sentence and the documented exit code; none is a violation.

The table runs in this process: names, paths, YAML, numbers, plans, planted bugs, histories. The rest runs as a program:
locales, environments, limits of the kernel, and interrupts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nemesis.cli.app import call
from nemesis.support.errors import EXIT_CRASH, EXIT_USAGE

SIMULATED = ("--runtime", "simulation", "--seed", "1", "--time-limit", "15")
LONGEST_SENTENCE = 4_000

NAMES = [
    "",
    " ",
    "-",
    "..",
    "/",
    "nul\0l",
    "a" * 5_000,
    "ünï.yaml",
    "'; rm -rf /",
    "$(id)",
    "\n",
    "😀",
    "../topics",
    "\x1b[31mred",
    "folder.yaml",
    "loop.yaml",
    "/dev/null",
    "/proc/self/mem",
    "%s%n",
    "topics.yml",
    "x" * 300 + ".yaml",
]
OPTIONS = [
    ("--faults", ""),
    ("--faults", "all,all"),
    ("--faults", "pause,flood"),
    ("--checkers", ""),
    ("--checkers", "\0"),
    ("--mutant", ".py"),
    ("--mutant", "/dev/null.py"),
    ("--mutant", "folder.yaml"),
    ("--broker-property", "="),
    ("--broker-property", f"a={'9' * 400}"),
    ("--broker-property", "replica.lag.time.max.ms=-1"),
    ("--broker-property", "replica.lag.time.max.ms=99999999999999999999"),
    ("--known", "all"),
    ("--engine", ""),
    ("--engine", "SPARK"),
    ("--store", ""),
    ("--store", "\0"),
    ("--store", "x" * 300),
    ("--store", "/dev/full/x"),
    ("--plan", "folder.yaml"),
    ("--plan", "loop.yaml"),
    ("--target", "Kafka"),
    ("--kafka-version", "9.9.9"),
    ("--spark-master", "local"),
    ("--controllers", "-1"),
    ("--reference", "1"),
    ("--store", "loop.yaml/x"),
]
NUMBERS = [
    ("--seed", "0x10"),
    ("--seed", "1_000"),
    ("--seed", "٣"),
    ("--seed", "9" * 5_000),
    ("--seed", "1.0"),
    ("--seed", "-0.0"),
    ("--seed", "18446744073709551616"),
    ("--brokers", "0"),
    ("--brokers", "1e1"),
    ("--time-limit", "inf"),
    ("--time-limit", "nan"),
    ("--time-limit", "1e309"),
    ("--time-limit", "15,5"),
    ("--time-limit", "١٥"),
    ("--time-limit", "1_5"),
    ("--time-limit", "0"),
]
SCENARIOS = [
    "",
    "[]",
    "null",
    "name",
    "name: [",
    "name: mine\n\tbad: 1",
    "name: &a [*a]",
    "name: mine\nname: mine\nbrokers: 99",
    "!!python/object/apply:os.system ['id']",
    "name: !!binary aGk=",
    "name: UPPER",
    "name: mine\nbrokers: .nan",
    "name: mine\nbrokers: 1e400",
    "name: mine\ntime_limit_s: .inf",
    "name: mine\ntime_limit_s: .nan",
    "name: mine\nfaults: {duration_s: [5]}",
    "name: mine\nfaults: {duration_s: [8, 5]}",
    "name: 2020-01-01",
    "name: mine\nfaults: {weights: {pause: 0}}",
    "name: mine\nfaults: {after: [x]}",
    "name: mine\nworkload: {name: x}",
    "name: mine\nworkload: {options: {x: 1}}",
    "name: mine\nbroker: {1: 2}",
    "name: mine\n1: 2",
    "? [a]\n: b",
    "---\nname: a\n---\nname: b",
    "name: mine\nphases: {warm_up_s: 600}",
    "name: mine\nexpect: maybe",
    "name: mine\nobjectives: {leaderless_s: 0}",
    "name: mine\nfaults: {kinds: pause}",
    "- " * 3_000,
    "{" * 1_000,
    "name: a\0b",
]
PLANS = [
    "",
    "{}",
    "x",
    "- x",
    "- {at_s: 5}",
    "- {fault: pause}",
    "- {at_s: -1, fault: pause}",
    "- {at_s: .nan, fault: pause}",
    "- {at_s: 5, fault: pause, duration_s: .inf}",
    "- {at_s: 5, fault: pause, target: all-of-them}",
    "- {at_s: 5, fault: pause, target: broker-99}",
    "- {at_s: 14, fault: pause, duration_s: 9}",
    "- {at_s: 5, fault: [pause]}",
    "- {at_s: 5, fault: pause, after: 'isr-join of'}",
    "- {at_s: 5, fault: packet-loss}",
    "- {at_s: 5, fault: pause, 1: 2}",
    "- {at_s: 5, fault: pause, bogus: 1}",
    "- {at_s: 2020-01-01, fault: pause}",
    "- " * 3_000,
]
MUTANTS = [
    "",
    "MUTANT = 1",
    "import nosuch",
    "raise SystemExit(0)",
    "1 / 0",
    "def",
    "\0",
    "MUTANT = None",
]
HISTORIES = [
    ("", "edn"),
    ("{", "edn"),
    ("\0", "edn"),
    ("(" * 20_000, "edn"),
    ("nil", "edn"),
    ("{:type :invoke}", "edn"),
    ("", "jsonl"),
    ("[", "jsonl"),
    ("null", "jsonl"),
    ("[" * 100_000, "jsonl"),
]
OTHERS = [
    ("check", "history.edn", "--workload", "nosuch"),
    ("check", ".", "--workload", "register"),
    ("check", "s3://"),
    ("check", "file://"),
    ("check", "ftp://x/y"),
    ("check", "s3://user:secret@host/x"),
    ("check", "x", "--consistency-model", "serializable"),
    ("explore", "topics", "--seeds", "0"),
    ("explore", "topics", "--jobs", "0"),
    ("explore", "topics", "--jobs", "999999"),
    ("explore", "topics", "--first-seed", "-1"),
    ("mutants", "--generated", "0"),
    ("mutants", "--generated", "1", "--batch", "0/0"),
    ("mutants", "--mutant", "x"),
    ("fetch", "kafka", "x"),
    ("fetch", "x", "1"),
    ("scenario", "x"),
    ("scenario",),
    ("frob",),
    ("",),
    ("--frob",),
    ("run",),
    ("list", "x"),
    ("doctor", "--store", "\0"),
    ("clean", "x"),
    ("replay", "/"),
    ("report", "/dev/null"),
    ("shrink", "\0"),
    ("export", "nosuch", "x.edn"),
    ("report", "loop.yaml"),
]


def in_files(
    texts: list[str], suffix: str, option: str | None
) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    """Return a run of each text, as the file of an option or as the scenario, with the files that it needs."""
    cases = []
    for number, text in enumerate(texts):
        name = f"hostile-{number}{suffix}"
        given = ("topics", option, name) if option else (name,)
        cases.append((("run", *given, *SIMULATED), {name: text}))
    return cases


CASES: list[tuple[tuple[str, ...], dict[str, str]]] = [
    *((("run", name, *SIMULATED), {}) for name in NAMES),
    *((("run", "topics", *SIMULATED, *option), {}) for option in OPTIONS),
    *((("run", "topics", "--runtime", "simulation", *option), {}) for option in NUMBERS),
    *in_files(SCENARIOS, ".yaml", None),
    *in_files(PLANS, ".yaml", "--plan"),
    *in_files(MUTANTS, ".py", "--mutant"),
    *(
        (
            ("check", f"history.{suffix}", "--workload", "register", "--engine", "inline"),
            {f"history.{suffix}": text},
        )
        for text, suffix in HISTORIES
    ),
    *((arguments, {}) for arguments in OTHERS),
]


def test_there_are_at_least_eighty() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("number", range(len(CASES)))
def test_hostile_input_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    arguments, files = CASES[number]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path / "runtime"))
    Path("folder.yaml").mkdir()
    Path("loop.yaml").symlink_to("loop.yaml")
    for name, text in files.items():
        Path(name).write_bytes(text.encode())
    before = set(Path().iterdir())
    code = call(list(arguments))
    shown = capsys.readouterr()
    assert code == EXIT_USAGE, shown.err
    assert shown.out == ""
    assert shown.err.startswith("nemesis: ")
    assert shown.err.count("\n") == 1
    assert "nemesis itself failed" not in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err) < LONGEST_SENTENCE
    assert all(sign.isprintable() for sign in shown.err.rstrip("\n"))
    assert set(Path().iterdir()) == before


def program(
    directory: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nemesis", *arguments],
        cwd=directory,
        env={**os.environ, "NEMESIS_RUNTIME_DIR": str(directory / "runtime"), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "tr_TR.UTF-8"},
        {"LC_ALL": "no_SUCH.locale"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb", "COLUMNS": "1"},
        {"COLUMNS": "many", "LINES": "-1"},
    ],
    ids=lambda environment: next(iter(environment.values())),
)
def test_an_environment_changes_no_exit_code(tmp_path: Path, environment: dict[str, str]) -> None:
    listed = program(tmp_path, "scenario", "topics", **environment)
    assert listed.returncode == 0, listed.stderr
    refused = program(tmp_path, "run", "töpics", **environment)
    assert refused.returncode == EXIT_USAGE
    assert refused.stderr.count("\n") == 1


LIMITED = (
    "import resource, sys\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
    "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "from nemesis.__main__ import main\n"
    "main()\n"
)


def test_a_limit_on_files_is_no_violation(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, "run", "topics", *SIMULATED],
        cwd=tmp_path,
        env={**os.environ, "NEMESIS_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == EXIT_CRASH, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("nemesis: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after_s", [0.0, 0.4, 1.5, 4.0])
def test_an_interrupt_at_any_time_is_no_violation(
    tmp_path: Path, number: signal.Signals, after_s: float
) -> None:
    """While Python starts, while nemesis is imported, while it runs, while it judges."""
    started = subprocess.Popen(
        [sys.executable, "-m", "nemesis", "run", "topics", "--runtime", "simulation"],
        cwd=tmp_path,
        env={**os.environ, "NEMESIS_RUNTIME_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after_s)
    started.send_signal(number)
    _, err = started.communicate(timeout=200)
    ended_by_python = {-number, 128 + number}  # before nemesis runs, the signal is Python's
    assert started.returncode in {0, 2, EXIT_CRASH, *ended_by_python}, err
    if started.returncode == EXIT_CRASH:
        assert err.splitlines()[-1].startswith("nemesis: ")
