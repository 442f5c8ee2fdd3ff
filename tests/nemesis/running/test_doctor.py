"""The doctor asks the real machine; what is missing has a cure, in one sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nemesis.running import doctor
from nemesis.runtimes.local import addresses
from nemesis.support.errors import MissingRequirement


def test_a_good_machine_passes_and_nothing_is_left_behind(tmp_path: Path) -> None:
    store = tmp_path / "not" / "yet" / "there"
    checks = doctor.examine(store)
    assert [check.name for check in checks if check.is_required and not check.ok] == []
    doctor.require(store)
    assert list(tmp_path.iterdir()) == []


def test_no_java_has_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingRequirement, match="no Java runtime was found: install a Java 17"):
        doctor.require(tmp_path)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('openjdk version "1.8.0_392"', "is Java 8: install a Java 17"),
        ("Segmentation fault", "does not tell its version"),
    ],
)
def test_an_unfit_java_has_a_cure(
    said: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingRequirement, match=sentence):
        doctor.require(tmp_path)


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingRequirement, match=r"the store .*/file/store cannot be written"):
        doctor.require(tmp_path / "file" / "store")


def test_a_port_taken_everywhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        port = everywhere.getsockname()[1]
        monkeypatch.setattr(addresses, "BROKER_PORT", port)
        with pytest.raises(MissingRequirement, match=rf":{port} is in use"):
            doctor.require(tmp_path)
