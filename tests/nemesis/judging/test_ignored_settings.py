"""Settings that reference brokers do not know are named in the report."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nemesis.cli.app import call
from nemesis.history.events import Event, Kind
from nemesis.judging.ignored_settings import sentences
from tests.nemesis.judging.archives import archived


def _written(zxid: int, path: str, config: dict[str, str] | None) -> Event:
    data = (
        None if config is None else msgspec.json.encode({"version": 1, "config": config}).decode()
    )
    return Event(
        time=-1, process="zookeeper", kind=Kind.ZNODE.value, zxid=zxid, path=path, data=data
    )


def test_a_setting_that_the_reference_honours_is_not_listed() -> None:
    assert sentences([_written(1, "/config/brokers/1", {"log.retention.ms": "1000"})]) == []
    assert sentences([_written(1, "/config/brokers/1", None)]) == []


def test_each_znode_has_one_sentence_with_the_last_values() -> None:
    rate = "follower.replication.throttled.rate"
    written = [
        _written(1, "/config/brokers/2", {rate: "1", "log.retention.ms": "1000"}),
        _written(2, "/config/brokers/2", {rate: "2", "background.threads": "4"}),
        _written(3, "/config/brokers/2", {}),
        _written(4, "/config/brokers/<default>", {"num.io.threads": "1"}),
    ]
    assert sentences(written) == [
        f"Reference brokers ignore these settings of /config/brokers/2: background.threads=4, {rate}=2.",
        "Reference brokers ignore these settings of /config/brokers/<default>: num.io.threads=1.",
    ]


def test_the_report_has_the_sentence(tmp_path: Path) -> None:
    run = archived(4, tmp_path)
    znodes = run.raw / "zookeeper.jsonl"
    written = _written(1 << 40, "/config/brokers/1", {"num.io.threads": "1"})
    with znodes.open("ab") as file:
        file.write(msgspec.json.encode(written) + b"\n")
    assert call(["check", str(run.path), "--engine", "inline"]) in (0, 2)
    said = "Reference brokers ignore these settings of /config/brokers/1: num.io.threads=1."
    assert said in run.report_file.read_text()
