"""The jars of a release: fetched once and whole, verified afterwards, or taken from a Kafka home directory.

The programs ``mvn`` of these tests are shell scripts that put files where Maven would.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.targets.kafka import maven
from nemesis.targets.kafka.installation import CHECKSUMS, cached, damage, fetch, installed_in
from nemesis.targets.kafka.releases import row_of

VERSION = "3.8.1"
"""Without a checksum in the table."""
COPY = """
for argument; do case "$argument" in -DoutputDirectory=*) out=${argument#-DoutputDirectory=};; esac; done
/bin/mkdir -p "$out"
"""
LOGGING = "".join(f'echo log >"$out/{jar}"; ' for jar in row_of(VERSION).logging_jars)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user who has never fetched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nemesis" / "kafka"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All the programs that there are."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def say(_sentence: str) -> None:
    pass


def mvn(programs: Path, script: str) -> None:
    (programs / "mvn").write_text(f"#!/bin/sh\n{COPY}{LOGGING}{script}\n")
    (programs / "mvn").chmod(0o755)


def test_what_is_fetched_needs_no_maven_any_more(cache: Path, programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"; echo more >"$out/other.jar"')
    said: list[str] = []
    installation = fetch(VERSION, said.append)
    assert said == [f"fetching Kafka {VERSION} with {programs / 'mvn'}"]
    assert list(cache.iterdir()) == [installation.jars]
    (programs / "mvn").unlink()
    assert fetch(VERSION, said.append) == installation
    assert len(said) == 1


def test_a_changed_jar_is_noticed_and_fetched_again(cache: Path, programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    jar = fetch(VERSION, say).jars / f"kafka_2.13-{VERSION}.jar"
    jar.write_text("something else")
    sentence = damage(cached(VERSION))
    assert sentence is not None
    assert sentence.startswith(f"{jar}: expected sha256 ")
    fetch(VERSION, say)
    assert jar.read_text() == "broker\n"
    assert jar.is_relative_to(cache)


@pytest.mark.usefixtures("cache")
def test_a_jar_too_many_is_noticed(programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    installation = fetch(VERSION, say)
    (installation.jars / "foreign.jar").touch()
    assert damage(installation) == (
        f"{installation.jars / 'foreign.jar'}: expected the jars of {CHECKSUMS} and no others"
    )


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"5631c61356", id="cut off"),
        pytest.param(b"\xff\xfe  kafka.jar\n", id="not UTF-8"),
    ],
)
def test_damaged_checksums_are_damage(programs: Path, content: bytes) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    checksums = fetch(VERSION, say).jars / CHECKSUMS
    intact = checksums.read_bytes()
    checksums.write_bytes(content)
    assert damage(cached(VERSION)) is not None
    fetch(VERSION, say)
    assert checksums.read_bytes() == intact


@pytest.mark.usefixtures("cache")
def test_jars_without_those_that_write_the_log_are_fetched_again(programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    installation = fetch(VERSION, say)
    missing = row_of(VERSION).logging_jars[0]
    (installation.jars / missing).unlink()
    lines = (installation.jars / CHECKSUMS).read_text().splitlines(keepends=True)
    kept = [line for line in lines if missing not in line]
    (installation.jars / CHECKSUMS).write_text("".join(kept))
    assert damage(installation) == f"{installation.jars / CHECKSUMS}: expected {missing} in it"
    assert damage(fetch(VERSION, say)) is None


@pytest.mark.usefixtures("cache")
def test_what_maven_leaves_out_of_the_log_is_named(programs: Path) -> None:
    missing = row_of(VERSION).logging_jars[1]
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"; /bin/rm "$out/{missing}"')
    with pytest.raises(MissingRequirement, match=f"Kafka {VERSION} without {missing}"):
        fetch(VERSION, say)


@pytest.mark.usefixtures("cache")
def test_a_directory_without_jars_is_damaged(programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    installation = fetch(VERSION, say)
    for jar in installation.jars.glob("*.jar"):
        jar.unlink()
    (installation.jars / CHECKSUMS).write_bytes(b"")
    assert damage(installation) == (
        f"{installation.jars / CHECKSUMS}: expected kafka_2.13-{VERSION}.jar in it"
    )


@pytest.mark.usefixtures("cache")
def test_a_link_to_nothing_is_damage(programs: Path) -> None:
    mvn(programs, f'echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    jar = fetch(VERSION, say).jars / f"kafka_2.13-{VERSION}.jar"
    jar.unlink()
    jar.symlink_to("nowhere")
    assert damage(cached(VERSION)) == f"{jar}: No such file or directory"


@pytest.mark.usefixtures("cache")
def test_fetches_at_once_download_once(tmp_path: Path, programs: Path) -> None:
    downloads = tmp_path / "downloads"
    mvn(programs, f'echo download >>{downloads}; echo broker >"$out/kafka_2.13-{VERSION}.jar"')
    with ThreadPoolExecutor(8) as pool:
        damages = list(pool.map(lambda _: damage(fetch(VERSION, say)), range(8)))
    assert damages == [None] * 8
    assert downloads.read_text() == "download\n"


def test_another_main_jar_than_that_of_the_table_is_refused(cache: Path, programs: Path) -> None:
    mvn(programs, 'echo forged >"$out/kafka_2.13-3.9.1.jar"')
    with pytest.raises(MissingRequirement, match=r"kafka_2.13-3.9.1.jar: expected sha256 5631c"):
        fetch("3.9.1", say)
    assert list(cache.iterdir()) == []


def test_no_maven_is_one_sentence_with_a_cure(cache: Path, programs: Path) -> None:
    assert list(programs.iterdir()) == []
    with pytest.raises(MissingRequirement, match=r"^Maven .* was not found: install it"):
        fetch(VERSION, say)
    assert not cache.exists()


def test_a_cache_that_cannot_be_made_is_one_sentence_with_a_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    sentence = r"^the cache .*/file/nemesis cannot be made: Not a directory: set XDG_CACHE_HOME"
    with pytest.raises(MissingRequirement, match=sentence):
        fetch(VERSION, say)


def test_jars_that_cannot_be_kept_are_one_sentence_with_a_cure(cache: Path, programs: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.touch()
    mvn(programs, "exit 0")
    with pytest.raises(MissingRequirement, match=r"cannot be kept in .*: set XDG_CACHE_HOME"):
        fetch(VERSION, say)


def test_what_maven_complains_about_is_quoted_and_nothing_is_left(
    cache: Path, programs: Path
) -> None:
    mvn(programs, "echo '[ERROR] '; echo '[ERROR] no such artifact -> [Help 1]'; exit 1")
    sentence = (
        f"download Kafka {VERSION}: no such artifact: check the version .* or use --kafka-home$"
    )
    with pytest.raises(MissingRequirement, match=sentence):
        fetch(VERSION, say)
    assert list(cache.iterdir()) == []


def test_a_download_without_the_broker_is_refused(cache: Path, programs: Path) -> None:
    mvn(programs, 'echo more >"$out/other.jar"')
    with pytest.raises(MissingRequirement, match=f"without kafka_2.13-{VERSION}.jar"):
        fetch(VERSION, say)
    assert list(cache.iterdir()) == []


def test_old_releases_get_a_newer_zookeeper_client() -> None:
    old, new = (maven.project(row_of(version), version) for version in ("2.1.1", "3.9.1"))
    assert "<artifactId>kafka_2.12</artifactId><version>2.1.1</version>" in old
    assert "<artifactId>zookeeper</artifactId><version>3.8.4</version>" in old
    assert "<artifactId>zookeeper</artifactId>" not in new


def test_a_home_directory_states_its_version(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-3.7.2.jar").touch()
    (tmp_path / "libs" / "kafka-clients-3.7.2.jar").touch()
    installation = installed_in(tmp_path)
    assert installation.version == "3.7.2"
    assert installation.jars == tmp_path / "libs"


def test_a_directory_without_kafka_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected one jar libs/kafka_SCALA-VERSION.jar in it"):
        installed_in(tmp_path)


def test_a_colon_in_the_path_of_jars_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "a:b"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / "kafka_2.13-3.7.2.jar").touch()
    with pytest.raises(
        UsageError, match=r"has a colon, .*: choose another directory for --kafka-h"
    ):
        installed_in(home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    with pytest.raises(UsageError, match=r"has a colon, .*: set XDG_CACHE_HOME to another"):
        fetch(VERSION, say)
