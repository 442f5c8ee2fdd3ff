"""The command line: all commands are there, and each imports what it needs itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nemesis.cli.app import COMMANDS, call, command_line
from nemesis.support.errors import EXIT_USAGE

MODULES = "nemesis.cli.commands"
CLUSTERS = ("nemesis.reference", "nemesis.workloads", "kazoo", "kio", "nemesis.runtimes")


def imported_by(statement: str) -> list[str]:
    """Return the modules of a new process after this statement."""
    program = f"import sys; from nemesis.cli.app import call; {statement}; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()[-1].split()


def test_all_commands_are_listed_in_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Commands:\n")
    names = [command.name for command in command_line([]).registered_commands]
    assert names == list(COMMANDS)
    assert [line.split(maxsplit=1) for line in listed.splitlines()] == [
        [name, command.help] for name, command in COMMANDS.items()
    ]


def test_the_list_of_commands_imports_none() -> None:
    assert not [name for name in imported_by("call([])") if name.startswith(f"{MODULES}.")]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_can_be_asked_for(name: str) -> None:
    commands = {command.name: command for command in command_line([name]).registered_commands}
    callback = commands[name].callback
    assert callback is not None
    assert callback.__module__ == f"{MODULES}.{name}"


def test_a_command_stands_alone() -> None:
    imported = imported_by("call(['clean', '--help'])")
    assert {module for module in imported if module.startswith(f"{MODULES}.")} == {
        f"{MODULES}.clean"
    }


@pytest.mark.parametrize("variable", ["COMP_WORDS", "_TYPER_COMPLETE_ARGS"])
def test_a_shell_that_completes_imports_one_command(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = "bash" if variable == "COMP_WORDS" else "zsh"
    monkeypatch.setenv("_NEMESIS_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv(variable, "nemesis clean --")
    monkeypatch.setenv("COMP_CWORD", "2")
    completed = subprocess.run(
        [sys.executable, "-m", "nemesis"], capture_output=True, text=True, check=True
    )
    assert "--json" in completed.stdout
    assert "--scenario" not in completed.stdout


def test_a_command_behind_two_dashes_is_the_one_that_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(["--", "scenario", "no-such-scenario"]) == EXIT_USAGE
    assert "no-such-scenario" in capsys.readouterr().err


def test_an_unknown_command_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["chekc"]) == EXIT_USAGE
    assert "chekc" in capsys.readouterr().err


def test_to_judge_a_run_no_cluster_is_imported() -> None:
    program = "import sys; from nemesis.cli.app import command_line; command_line(['check']); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = ran.stdout.split()
    assert "nemesis.checkers" in imported
    assert [name for name in CLUSTERS if name in imported] == []


def test_to_judge_an_external_history_our_own_properties_are_not_imported(tmp_path: Path) -> None:
    write = "{:type :%s, :process 0, :f :write, :value 3}\n"
    (tmp_path / "history.edn").write_text(write % "invoke" + write % "ok", encoding="utf-8")
    program = (
        "import sys; from nemesis.cli.app import call; call(['check', 'history.edn', '--workload', 'register']); "
        "print(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    imported = ran.stdout.rsplit("\n", 2)[-2].split()
    assert "nemesis.checkers.linearizable" in imported
    assert [name for name in ("nemesis.checkers.registered", "psutil") if name in imported] == []
