"""Exit code 1 means a violation and nothing else: not a reader that has left, a full disk or a strange path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nemesis
from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.support.errors import EXIT_CRASH, EXIT_USAGE

NEMESIS = f"{sys.executable} -m nemesis"
UNDECODABLE = b"/tmp/no-such-\xff-run"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of bash, whose exit code is that of ``nemesis`` also in a pipeline."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", ["list", "list --json"])
def test_a_reader_that_leaves_changes_no_exit_code(command: str) -> None:
    ran = shell(f"{NEMESIS} {command} | (exec 0<&-; sleep 3)")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_closed_standard_output_changes_no_exit_code() -> None:
    ran = shell(f"{NEMESIS} list >&-")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_closed_standard_error_changes_no_exit_code() -> None:
    assert shell(f"{NEMESIS} check nowhere 2>&-").returncode == EXIT_USAGE
    assert shell(f"{NEMESIS} check nowhere 2>/dev/full").returncode == EXIT_USAGE


INTERRUPTED_NOTE = """
import sys
from nemesis.cli import streams
from nemesis.cli.console import note

def interrupt(frame, event, argument):
    if frame.f_code is not streams._Unbreakable.write.__code__:
        return None
    if event == "return":
        sys.settrace(None)
        raise KeyboardInterrupt
    return interrupt

streams.protect()
sys.settrace(interrupt)
try:
    note("one")
except KeyboardInterrupt:
    note("interrupted")
note("two")
"""


def test_a_line_that_is_interrupted_behind_its_write_is_written_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_NOTE],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr == "one\ninterrupted\ntwo\n"


@pytest.mark.parametrize("command", ["list", "list --json", "clean --json"])
def test_output_that_cannot_be_written_is_a_failure_of_the_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Also output as short as that of ``clean --json``, which Python writes when the command has ended."""
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path))
    ran = shell(f"{NEMESIS} {command} > /dev/full")
    assert ran.returncode == EXIT_CRASH
    assert ran.stderr == (
        "nemesis: the output cannot be written: No space left on device: "
        "redirect it to a place with space\n"
    )


@pytest.mark.parametrize("command", ["check", "report", "replay", "run"])
def test_a_path_that_is_not_utf_8_is_refused_in_one_sentence(command: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "nemesis", command, UNDECODABLE],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr.count(b"\n") == 1
    assert b"argument 2: expected UTF-8, got b'/tmp/no-such-\\xff-run'" in ran.stderr


def test_a_working_directory_that_is_not_utf_8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / os.fsdecode(b"\xff")
    directory.mkdir()
    monkeypatch.chdir(directory)
    assert call(["list"]) == EXIT_USAGE
    assert "the working directory: expected UTF-8" in capsys.readouterr().err


def test_a_working_directory_that_was_removed_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    ran = shell(f"mkdir {gone}; cd {gone}; rmdir {gone}; {NEMESIS} list")
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr == (
        "nemesis: the working directory does not exist any more: change to one that exists\n"
    )


def test_an_installation_below_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    checkout = tmp_path / os.fsdecode(b"\xff")
    checkout.symlink_to(Path(nemesis.__file__).parent.parent)
    ran = subprocess.run(
        [sys.executable, "-m", "nemesis", "list"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr.startswith(b"nemesis: the installation: expected UTF-8, got b'")


@pytest.mark.parametrize("command", [["check", "--engine", "inline"], ["report"], ["replay"]])
def test_a_link_to_a_run_below_a_path_that_is_not_utf_8_is_refused(
    tmp_path: Path, command: list[str]
) -> None:
    store = tmp_path / os.fsdecode(b"\xff")
    run = RunDirectory.create(store, RunInfo(scenario="partition-controller", seed=1))
    link = tmp_path / "run"
    link.symlink_to(run.path)
    ran = subprocess.run(
        [sys.executable, "-m", "nemesis", *command, str(link)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr.count(b"\n") == 1
    assert b"the directory of the run: expected a path in UTF-8, got b'" in ran.stderr


def incomplete_installation(directory: Path) -> None:
    """Fill the directory with an installation that lacks the module of ``nemesis list``."""
    source, package = Path(nemesis.__file__).parent, directory / "nemesis"
    lacking = shutil.ignore_patterns("list.py", "__pycache__")
    shutil.copytree(source / "cli", package / "cli", ignore=lacking)
    for entry in source.iterdir():
        if entry.name != "cli":
            (package / entry.name).symlink_to(entry)


def test_a_crash_of_a_program_at_a_path_that_is_not_utf_8_keeps_its_trace(tmp_path: Path) -> None:
    installation, programs = tmp_path / "installation", tmp_path / os.fsdecode(b"\xff")
    incomplete_installation(installation)
    programs.mkdir()
    program = programs / "nemesis"
    program.write_text("from nemesis.__main__ import main; main()")
    ran = subprocess.run(
        [sys.executable, program, "list"],
        env={**os.environ, "PYTHONPATH": str(installation), "TMPDIR": str(programs)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == EXIT_CRASH
    assert ran.stderr.count(b"\n") == 1
    assert b"nemesis itself failed (ModuleNotFoundError" in ran.stderr
    assert b"\\udcff/nemesis-crash-" in ran.stderr
    [log] = programs.glob("nemesis-crash-*.log")
    assert b"\\udcff/nemesis' list" in log.read_bytes()


def test_a_broken_pipe_inside_a_command_is_no_violation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode() -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("nemesis.cli.commands.list.list_everything", explode)
    assert call(["list"]) == EXIT_CRASH
    assert "nemesis itself failed (BrokenPipeError" in capsys.readouterr().err


def test_an_installation_that_lacks_a_package_is_a_failure_of_the_harness() -> None:
    program = "import sys; sys.modules['typer'] = None; from nemesis.__main__ import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == EXIT_CRASH
    assert "typer" in ran.stderr


@pytest.mark.e2e
@pytest.mark.parametrize("size", ["100k", "600k", "3m"])
def test_a_full_disk_under_the_store_is_one_sentence(tmp_path: Path, size: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shell(f"mount -t tmpfs -o size={size} tmpfs {disk}")
    if mounted.returncode:
        pytest.skip(f"a small disk needs root: {mounted.stderr.strip()}")
    options = f"--runtime simulation --seed 1 --time-limit 20 --store {disk}/store"
    try:
        ran = shell(f"{NEMESIS} run partition-controller {options}")
    finally:
        shell(f"umount {disk}")
    assert ran.returncode == EXIT_CRASH
    assert ran.stderr.splitlines()[-1].startswith(
        "nemesis: no space is left on the disk: free some"
    )
    assert "Traceback" not in ran.stderr
    assert "Logging error" not in ran.stderr
