"""Ctrl-C: whenever it comes it is one sentence and exit code 255, and what is being written gets written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nemesis.cli import app as cli
from nemesis.running import doctor
from nemesis.support.errors import EXIT_CRASH
from nemesis.support.interrupts import unbroken, unheard_by_children

ROOT = Path(__file__).parents[3]


@pytest.fixture
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell that starts something in the background has it ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_is_heard")
def test_what_is_being_written_is_finished_first() -> None:
    written = []

    def write() -> None:
        with unbroken():
            os.kill(os.getpid(), signal.SIGINT)
            written.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert written == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_child_does_not_hear_what_its_parent_hears() -> None:
    says_blocked = (
        "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    )
    heard = []
    for context in (unheard_by_children(), unbroken()):
        with context:
            child = subprocess.run([sys.executable, "-c", says_blocked], stdout=-1, check=True)
            heard.append(child.stdout.strip())
    assert heard == [b"True", b"False"]


def test_ctrl_c_in_a_command_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_store: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupted)
    assert cli.call(["doctor"]) == EXIT_CRASH
    assert capsys.readouterr().err.strip() == "nemesis: interrupted"


def test_ctrl_c_while_everything_is_imported_is_one_sentence() -> None:
    """The program's own beginning, with an import that is interrupted."""
    begun = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from nemesis.__main__ import main\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", begun], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (EXIT_CRASH, "", "nemesis: interrupted\n")
