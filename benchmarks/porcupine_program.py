"""The Go program in ``benchmarks/porcupine``, which asks Porcupine about histories.

It needs Go, and the module from Go's proxy or a cache.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

SOURCE: Final = Path(__file__).parent / "porcupine"
NOTHING: Final = -1
"""The value of a register that was never written, in the program's input."""
TIMEOUT_S: Final = 280
WORKLOADS: Final = frozenset({"register", "cas-register", "mutex", "key-value"})


class PorcupineMissing(Exception):
    """The program cannot be built on this machine; the message says why."""


class FileAnswer(msgspec.Struct, frozen=True):
    """What Porcupine says of a file."""

    operations: int
    read_s: float
    check_s: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What Porcupine says of a small history: ``ok`` or ``illegal``, and how long checking took."""

    verdict: str
    seconds: float


def build(directory: Path) -> Path:
    """Return the program, built into a directory. Raises PorcupineMissing, or RuntimeError for an error in it."""
    if shutil.which("go") is None:
        raise PorcupineMissing("Go is missing")
    program = directory / "porcupine"
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode and "dial tcp" in done.stderr:
        raise PorcupineMissing("Porcupine cannot be downloaded")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return program


def judge_file(program: Path, file: Path, workload: str) -> FileAnswer:
    """Return what Porcupine says of a file of ``benchmarks.histories.jepsen``."""
    done = subprocess.run(
        [str(program), str(file), workload], capture_output=True, check=True, timeout=TIMEOUT_S
    )
    return msgspec.json.decode(done.stdout, type=FileAnswer)


def judge(program: Path, workload: str, histories: Sequence[list[dict[str, Any]]]) -> list[Answer]:
    """Return what Porcupine says of histories, each a list of operations with the fields of ``model.go``."""
    asked = [json.dumps({"workload": workload, "operations": history}) for history in histories]
    done = subprocess.run(
        [str(program)],
        input="".join(line + "\n" for line in asked),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    words = [line.split() for line in done.stdout.splitlines()]
    return [Answer(verdict, float(seconds)) for verdict, seconds in words]
