"""Whose log directories these are: what is stored, what is refused, what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.server.broker_metadata_checkpoint import (
    BrokerMetadata,
    BrokerMetadataCheckpoint,
    InconsistentBrokerIdError,
    InconsistentBrokerMetadataError,
    InconsistentClusterIdError,
)

OWN = BrokerMetadata("AbCdEf", 3)


def checkpoint(*directories: Path) -> BrokerMetadataCheckpoint:
    return BrokerMetadataCheckpoint(RealDisk(), [str(path) for path in directories])


def store(directory: Path, *lines: str) -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / "meta.properties"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def test_what_is_written_is_found_again_and_is_ones_own(tmp_path: Path) -> None:
    files = checkpoint(tmp_path)
    assert files.stored_broker_id() is None
    files.verify(OWN)
    files.write(str(tmp_path), OWN)
    written = (tmp_path / "meta.properties").read_text().splitlines()
    assert sorted(written) == ["broker.id=3", "cluster.id=AbCdEf", "version=0"]
    assert files.stored_broker_id() == 3
    files.verify(OWN)


def test_kafkas_own_file_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    lines = ("#", "#Sun Nov 22 01:02:03 UTC 2026", "cluster.id=AbCdEf", "version=0", "broker.id=3")
    file = store(tmp_path, *lines, "directory.id=x")
    before = file.read_text()
    files = checkpoint(tmp_path, tmp_path / "absent")
    assert files.stored_broker_id() == 3
    files.verify(OWN)
    files.write(str(tmp_path), OWN)
    assert file.read_text() == before


def test_a_file_that_does_not_say_all_is_completed(tmp_path: Path) -> None:
    store(tmp_path, "version=0", "broker.id=3")
    files = checkpoint(tmp_path)
    files.verify(OWN)
    files.write(str(tmp_path), OWN)
    with pytest.raises(InconsistentClusterIdError):
        files.verify(BrokerMetadata("other", 3))


def test_another_brokers_directory_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "a", "version=0", "broker.id=3")
    file = store(tmp_path / "b", "version=0", "broker.id=4")
    files = checkpoint(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InconsistentBrokerIdError, match=f"broker.id is 3, and {file} says 4: "):
        files.verify(OWN)
    with pytest.raises(
        InconsistentBrokerMetadataError, match=r"says broker\.id 3, and .* 4: log\.dirs"
    ):
        files.stored_broker_id()


def test_another_clusters_directory_is_refused(tmp_path: Path) -> None:
    file = store(tmp_path, "version=0", "cluster.id=else", "broker.id=3")
    words = f"{file} says cluster.id else, and ZooKeeper AbCdEf: zookeeper.connect may"
    with pytest.raises(InconsistentClusterIdError, match=words):
        checkpoint(tmp_path).verify(OWN)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("version=1", "node.id=3"), "has version 1: it has to be 0"),
        ((), "has version None"),
        (("version=0", "broker.id=three"), "has broker.id 'three', not a number"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, lines: tuple[str, ...], words: str
) -> None:
    store(tmp_path, *lines)
    with pytest.raises(InconsistentBrokerMetadataError, match=words):
        checkpoint(tmp_path).verify(OWN)


def test_a_directory_that_cannot_be_read_is_left_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "meta.properties").mkdir()  # reading it is an OSError
    checkpoint(tmp_path).verify(OWN)
    assert "meta.properties cannot be read" in caplog.text
