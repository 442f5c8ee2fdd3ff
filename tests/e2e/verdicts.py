"""What a test of a correct cluster in real processes accepts as a verdict.

Bounds of time are judged against a machine that other processes use, too. If that machine itself was busy for as long
as a bound was exceeded by, the property says `unknown` and names the load (`checkers/liveness/unexplained.py`). That is
its specification, and no defect of the cluster; each other reason of an `unknown` verdict fails the test.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUSY = re.compile(
    r"this machine was busy for up to|was up to [\d,]+ ms late, because the machine was busy"
)
"""The two sentences with which checkers blame the machine: its load, and the delay of nemesis."""


def assert_valid(ran: subprocess.CompletedProcess[str], run: Path) -> None:
    """Fail unless the command judged this run, and at most the load of the machine left a property `unknown`."""
    assert ran.returncode in (0, 2), ran.stdout + ran.stderr
    results = json.loads((run / "results.json").read_text())["results"]
    assert results
    assert [doubt for result in results for doubt in doubts(result)] == []


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
