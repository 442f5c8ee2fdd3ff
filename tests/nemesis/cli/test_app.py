"""The command line: all commands are there, and each imports what it needs itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nemesis.cli.app import COMMANDS, call, command_line
from nemesis.support.errors import EXIT_USAGE

CLUSTERS = ("nemesis.reference", "nemesis.workloads", "kazoo", "kio", "nemesis.runtimes")


def test_all_commands_are_there_when_none_is_asked_for() -> None:
    names = [command.name for command in command_line([]).registered_commands]
    assert names == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_stands_alone(name: str) -> None:
    (command,) = command_line([name, "--help"]).registered_commands
    assert command.name == name


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
