"""A run of a correct cluster in real processes, which has to be valid.

Bounds of time are judged on a machine that other processes use, too. If it was busy for as long as a bound was exceeded
by, the property is `unknown` and names the load (`checkers/liveness/unexplained.py`). Such a run shows nothing, so it
is repeated, a few times. Each other reason of a verdict that is not valid fails the test at once.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.command import latest, nemesis

ATTEMPTS = 3
UNKNOWN = 2
BUSY = re.compile(
    r"this machine was busy for up to|was up to [\d,]+ ms late, because the machine was busy"
)
"""The two sentences with which checkers blame the machine: its load, and the delay of nemesis."""


def valid_run(
    tmp_path: Path, *arguments: str, timeout_s: float = 240.0
) -> subprocess.CompletedProcess[str]:
    """Return the ``nemesis run`` of these arguments that was valid; fails if none is, or for another reason."""
    for _ in range(ATTEMPTS):
        ran = nemesis(tmp_path, "run", *arguments, timeout_s=timeout_s)
        if ran.returncode == 0:
            return ran
        assert ran.returncode == UNKNOWN, ran.stdout + ran.stderr
        results = json.loads((latest(tmp_path) / "results.json").read_text())["results"]
        assert [doubt for result in results for doubt in doubts(result)] == []
    raise AssertionError(f"this machine was too busy for {ATTEMPTS} runs: {ran.stdout}")


def doubts(result: Mapping[str, Any]) -> list[str]:
    """Return why this result of a property is not valid, without what a busy machine explains."""
    name, verdict, findings = result["property"], result["verdict"], result["findings"]
    if verdict == "valid":
        return []
    reasons = [finding["sentence"] for finding in findings if not _is_busy(finding)]
    hidden = result["finding_count"] - len(findings)
    if hidden or not findings:
        reasons.append(f"{hidden} findings are not stored")
    return [f"{name}: {verdict}: {reason}" for reason in reasons]


def _is_busy(finding: Mapping[str, Any]) -> bool:
    return finding["verdict"] == "unknown" and BUSY.search(finding["sentence"]) is not None
