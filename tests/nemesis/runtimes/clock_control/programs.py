"""Programs that run under the preloaded library and are asked what they see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nemesis.runtimes.clock_control.library import environment

EVALUATE = """
import json, sys
space = {}
for line in sys.stdin:
    exec(json.loads(line), space)
    print(json.dumps(space.pop("answer")), flush=True)
"""


class PythonProgram:
    """A Python that does what it is told, and answers with what its code calls ``answer``."""

    def __init__(self, library: Path, page: Path | None) -> None:
        clock = {} if page is None else environment(library, page)
        self._process = subprocess.Popen(
            [sys.executable, "-c", EVALUATE],
            env={**os.environ, "LD_PRELOAD": str(library), **clock},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, code: str) -> None:
        """Let it begin; ``answer`` has what came of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, code: str) -> Any:
        self.tell(code)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
