"""Apache Kafka's own command-line tools, one Java process for each call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

TOOLS: Final = Path(sys.prefix) / "kafka-tools"
"""The jars; ``.ci/install --tests`` puts them there."""
TIMEOUT_S: Final = 120.0
_JAVA: Final = (
    *("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("-cp", f"{TOOLS}/*"),
)

needs_kafka_tools = pytest.mark.skipif(
    not list(TOOLS.glob("kafka-tools-[0-9]*.jar")),
    reason="Kafka's tools are missing: run .ci/install --tests with Maven",
)


def run_tool(main_class: str, *arguments: str, stdin: str | None = None, exit_code: int = 0) -> str:
    """Return what the tool prints, errors behind it; raises AssertionError when it ends with another exit code."""
    done = subprocess.run(
        [*_JAVA, main_class, *arguments],
        input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == exit_code, printed
    return printed


@contextmanager
def running_tool(main_class: str, *arguments: str, output: Path) -> Iterator[None]:
    """Run a tool that goes on until it is terminated; what it prints is in the file, errors too."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*_JAVA, main_class, *arguments], stdout=file, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
