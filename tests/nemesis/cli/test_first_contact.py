"""What a new user tries first: the version, help, a misspelled name, completion in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from nemesis.cli.app import call
from nemesis.faults import members, plan, selectors, traced_trigger
from nemesis.reference.__main__ import main as run_broker
from nemesis.registry import hint
from nemesis.support.errors import EXIT_USAGE, UsageError


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["--version"]) == 0
    assert capsys.readouterr().out == f"nemesis {version('nemesis-kafka')}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["run", "partiton-controller"], "partition-controller"),
        (["run", "topics", "--target", "refrence"], "reference"),
        (["run", "topics", "--runtime", "Simulation"], "simulation"),
        (["run", "topics", "--faults", "kill-controler"], "kill-controller"),
        (["run", "topics", "--mutant", "hw-unbound"], "hw-unbounded"),
        (["run", "topics", "--checkers", "hw-bound"], "hw-bounded"),
        (["run", "topics", "--engine", "inlin"], "inline"),
        (["check", "x.edn", "--workload", "list-apend"], "list-append"),
        (["chekc"], "check"),
        (["run", "topics", "--sed", "7"], "--seed"),
    ],
)
def test_the_name_that_was_meant_is_suggested(
    capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str
) -> None:
    assert call(arguments) == EXIT_USAGE
    sentence = capsys.readouterr().err
    suggestion = sentence.partition("allowed are")[0]
    assert meant in suggestion
    assert sentence.count("\n") == 1


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda: selectors.parse("controler"), "controller"),
        (lambda: members.check("minorty", frozenset(), duration_s=1.0), "minority"),
        (lambda: traced_trigger.parse("isr-jion"), "isr-join"),
        (lambda: plan.decode([{"at_s": 5, "fault": "partiton"}]), "partition"),
    ],
)
def test_names_in_files_are_suggested_too(ask: object, meant: str) -> None:
    assert callable(ask)
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        ask()


def test_a_name_without_any_likeness_suggests_nothing() -> None:
    assert hint("zebra", ["apple", "quince"]) == ""


@pytest.mark.parametrize("arguments", [["run"], ["run", "topics", "--seed"], ["run", "--sad"]])
def test_an_error_of_a_command_points_to_its_help(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert call(arguments) == EXIT_USAGE
    assert "`nemesis run --help`" in capsys.readouterr().err


def test_a_target_that_cannot_be_simulated_is_refused_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(["run", "topics", "--target", "mixed", "--runtime", "simulation"]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert "'mixed'" in error
    assert "--runtime" in error


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("nemesis ru", ["run", "runs"]),
        ("nemesis run part", ["partition-controller"]),
        ("nemesis run topics --target mix", ["mixed"]),
        ("nemesis run topics --runtime sim", ["simulation"]),
        (
            "nemesis run topics --faults pause,kill-controller,part",
            ["pause,kill-controller,partition", "pause,kill-controller,partition-zookeeper"],
        ),
        ("nemesis run topics --checkers hw-b", ["hw-bounded"]),
        ("nemesis run topics --mutant hw-unb", ["hw-unbounded"]),
    ],
)
def test_a_shell_is_offered_names(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    offered: list[str],
) -> None:
    monkeypatch.setenv("_NEMESIS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert call([]) == 0
    completions = capsys.readouterr().out.split()
    assert completions
    assert set(completions) <= set(offered)


def test_a_shell_that_is_not_known_is_no_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_NEMESIS_COMPLETE", "complete_abacus")
    assert call([]) == EXIT_USAGE
    assert "abacus" in capsys.readouterr().err


def test_a_broker_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    run_broker(["--help"])
    text = capsys.readouterr().out
    assert text.startswith("usage: python -m nemesis.reference CONFIG.json\n")
    assert '"zookeeper.connect"' in text


def test_the_completion_script_is_printed() -> None:
    """Asked by the variable: ``--show-completion`` looks at the shell that runs the tests."""
    shown = subprocess.run(
        [sys.executable, "-m", "nemesis"],
        env={**os.environ, "_NEMESIS_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert shown.returncode == 0
    assert "_NEMESIS_COMPLETE=complete_bash" in shown.stdout
