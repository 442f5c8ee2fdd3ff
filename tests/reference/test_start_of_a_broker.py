"""What a broker refuses before it touches a log: directories that are not its own to use, settings that cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nemesis.reference.__main__ import read_config
from nemesis.reference.adapters.log_dir_locks import locked_log_dirs
from nemesis.reference.kafka_config import ConfigError
from nemesis.reference.log.errors import KafkaStorageError

LOCK = """
import sys
from nemesis.reference.adapters.log_dir_locks import locked_log_dirs
from nemesis.reference.log.errors import KafkaStorageError
try:
    with locked_log_dirs(sys.argv[1:]):
        print("held")
except KafkaStorageError as error:
    print(error)
"""


def lock_elsewhere(*log_dirs: Path) -> str:
    """What another process says that wants the directories."""
    command = [sys.executable, "-c", LOCK, *map(str, log_dirs)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def configuration(tmp_path: Path, **properties: Any) -> Path:
    file = tmp_path / "broker.json"
    known = {
        "broker.id": 1,
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "zookeeper.connect": "127.0.0.1:2181",
        "log.dirs": ["a"],
    }
    file.write_text(json.dumps(known | properties))
    return file


def test_a_log_directory_is_one_processs(tmp_path: Path) -> None:
    own, other = tmp_path / "mine", tmp_path / "other"
    with locked_log_dirs([str(own)]):
        assert lock_elsewhere(other, own) == (
            f"log directory {own} is in use by another process, which holds {own}/.lock"
        )
        assert lock_elsewhere(other) == "held"
    assert lock_elsewhere(other, own) == "held"


def test_one_directory_under_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    both = [f"{tmp_path}/a", f"{tmp_path}/b"]
    with (
        pytest.raises(KafkaStorageError, match=r"a and .*b are the same one"),
        locked_log_dirs(both),
    ):
        pass


def test_a_directory_that_cannot_be_had_is_no_reason_not_to_hold_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    good = tmp_path / "good"
    with locked_log_dirs([f"{tmp_path}/file", str(good)]):
        assert "in use" in lock_elsewhere(good)


def test_log_directories_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = read_config(configuration(tmp_path, **{"log.dirs": ["a", "/b"]}))
    assert config.log_dirs == (f"{tmp_path}/a", "/b")


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"log.dirs": [""]}, "log.dirs has an empty path"),
        ({"log.dirs": ["/a", "/b", "/b/../a/"]}, "log.dirs has '/a' twice"),
        ({"log.dirs": "/a,/b"}, "log.dirs is '/a,/b': it has to be `array`, not `str`"),
        ({"log.dirs": [1]}, "log.dirs is .1.: it has to be `str`, not `int`"),
        ({"log.segment.bytes": 13}, "log.segment.bytes is 13: it has to be `int` >= 14"),
        ({"log.cleaner.threads": 0}, "log.cleaner.threads is 0: it has to be `int` >= 1"),
    ],
)
def test_settings_of_logs_that_cannot_be_are_refused(
    tmp_path: Path, properties: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_config(configuration(tmp_path, **properties))
