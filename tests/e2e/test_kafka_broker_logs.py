"""What unmodified Kafka brokers log of their replicas, judged: with ZooKeeper and with KRaft."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nemesis.history.run_directory import RunDirectory
from nemesis.targets.kafka.releases import DEFAULT_VERSION
from tests.e2e.command import SCENARIO, latest, nemesis
from tests.e2e.kafka_jars import require_jars
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

KRAFT_VERSION = "4.1.1"
LOGGED = ("hw-bounded", "hw-grows", "hw-within-log", "leader-keeps-log")
JUDGED = re.compile(r"Setting high watermark \(offset=(\d+),")


@pytest.mark.parametrize(
    "version", [pytest.param(DEFAULT_VERSION, marks=pytest.mark.nightly), KRAFT_VERSION]
)
def test_high_watermarks_of_kafka_are_judged(tmp_path: Path, version: str) -> None:
    require_jars(version)
    arguments = ("--seed", "2", "--time-limit", "20", "--faults", "kill,pause", "--broker-logs")
    kafka = ("--target", "kafka", "--kafka-version", version, "--runtime", "local")
    valid_run(tmp_path, SCENARIO, *kafka, *arguments, timeout_s=400)
    run = RunDirectory.open(latest(tmp_path))
    assert "--broker-logs" in run.read_info().replay
    judged = _checked(run)
    assert all(judged[name] > 0 for name in LOGGED)
    assert judged["hw-bounded"] > 100

    _raise_high_watermarks(run)
    again = nemesis(tmp_path, "check", str(run.path))
    assert again.returncode == 1, again.stdout + again.stderr
    assert "invalid  hw-bounded" in again.stdout


def _checked(run: RunDirectory) -> dict[str, int]:
    results = json.loads(run.results_file.read_text())["results"]
    return {result["property"]: result["checked"] for result in results}


def _raise_high_watermarks(run: RunDirectory) -> None:
    """Let every broker have logged high watermarks that are 1,000 records higher."""
    for number in (1, 2, 3):
        file = run.raw_file(f"broker-{number}")
        raised = JUDGED.sub(
            lambda match: f"Setting high watermark (offset={int(match[1]) + 1_000},",
            file.read_text(encoding="utf-8"),
        )
        file.write_text(raised, encoding="utf-8")
