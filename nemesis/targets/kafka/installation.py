"""The jars of a Kafka release on this machine.

``nemesis fetch kafka VERSION`` makes a directory in the user's cache, whole or not at all: the jars, and ``SHA256SUMS``
with the checksum of each, against which they are verified before every run. Processes that fetch the same version take
turns. A Kafka home directory, as its
distribution unpacks it, has the jars in ``libs``; they belong to the user and are taken as they are.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.support.paths import CURE_FOR_CACHE, cache_directory
from nemesis.targets.kafka.maven import download, find_maven
from nemesis.targets.kafka.releases import Release, find_release

CHECKSUMS: Final = "SHA256SUMS"
_CHECKSUM_LINE: Final = re.compile(r"([0-9a-f]{64})  ([^/]+\.jar)")
_MAIN_JAR: Final = re.compile(r"kafka_[0-9.]+-([0-9]+\.[0-9]+\.[0-9]+)\.jar")


@dataclass(frozen=True, slots=True)
class Installation:
    """A version of Kafka and the directory of its jars."""

    version: str
    jars: Path

    @property
    def release(self) -> Release:
        return find_release(self.version)


def cached(version: str) -> Installation:
    """Return the place of a version in the user's cache, whether its jars are there or not; raises ``UsageError``."""
    find_release(version)
    jars = cache_directory() / "kafka" / version
    _refuse_colon(jars, "set XDG_CACHE_HOME to another directory")
    return Installation(version, jars)


def installed_in(home: Path) -> Installation:
    """Return the installation in a Kafka home directory; raises ``UsageError`` when its jars are not there."""
    jars = home.resolve() / "libs"
    versions = {match[1] for jar in jars.glob("*.jar") if (match := _MAIN_JAR.fullmatch(jar.name))}
    if len(versions) != 1:
        raise UsageError(
            f"--kafka-home {home}: expected one jar libs/kafka_SCALA-VERSION.jar in it"
        )
    installation = Installation(versions.pop(), jars)
    find_release(installation.version)
    _refuse_colon(jars, "choose another directory for --kafka-home")
    return installation


def _refuse_colon(jars: Path, cure: str) -> None:
    if ":" in str(jars):
        raise UsageError(
            f"the directory of jars {jars} has a colon, which ends an entry of a class path: {cure}"
        )


def fetch(version: str, say: Callable[[str], None]) -> Installation:
    """Return the cached installation, downloaded when it is not there or damaged; blocks, also while others download.

    Raises ``UsageError``, and ``MissingRequirement`` when it cannot be had.
    """
    installation = cached(version)
    if damage(installation) is None:
        return installation
    parent = installation.jars.parent
    try:
        with _only_one(version):
            # Another process may have fetched it while this one waited, and uses it now.
            if damage(installation) is not None:
                _download(installation, say)
    except OSError as error:
        raise MissingRequirement(
            f"the jars of Kafka {version} cannot be kept in {parent}: {error.strerror}: {CURE_FOR_CACHE}"
        ) from None
    return installation


@contextmanager
def _only_one(version: str) -> Iterator[None]:
    """Wait until no other process of this user fetches this version; the kernel lets go when a process ends."""
    with (cache_directory() / f"kafka-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(installation: Installation, say: Callable[[str], None]) -> None:
    """Replace what is there by a download; raises ``MissingRequirement`` and OSError."""
    version, parent = installation.version, installation.jars.parent
    say(f"fetching Kafka {version} with {find_maven()}")
    parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="draft-") as folder:
        draft = Installation(version, Path(folder) / version)
        download(installation.release, version, draft.jars)
        _require_jars(draft)
        _write_checksums(draft.jars)
        shutil.rmtree(installation.jars, ignore_errors=True)
        draft.jars.replace(installation.jars)


def damage(installation: Installation) -> str | None:
    """Return the first thing that is not as it was fetched, in one sentence; None when all is."""
    file = installation.jars / CHECKSUMS
    try:
        expected = _checksums_in(file)
        return _difference(installation, expected)
    except ValueError as error:
        return f"{file}: {error}"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"


def _checksums_in(file: Path) -> dict[str, str]:
    """Return the checksums by the names of jars; raises OSError, and ValueError when this is not such a file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    matches = [match for line in lines if (match := _CHECKSUM_LINE.fullmatch(line))]
    if len(matches) != len(lines):
        raise ValueError("expected a checksum and the name of a jar in each line")
    return {match[2]: match[1] for match in matches}


def _difference(installation: Installation, expected: Mapping[str, str]) -> str | None:
    """Return the first jar that is too many, missing or changed, in one sentence; raises OSError."""
    main_jar = installation.release.main_jar(installation.version)
    present = {jar.name for jar in installation.jars.glob("*.jar")}
    if differing := sorted(expected.keys() ^ present):
        return f"{installation.jars / differing[0]}: expected the jars of {CHECKSUMS} and no others"
    for jar in (main_jar, *installation.release.logging_jars):
        if jar not in expected:
            return f"{installation.jars / CHECKSUMS}: expected {jar} in it"
    for name, checksum in expected.items():
        if (got := _sha256(installation.jars / name)) != checksum:
            return f"{installation.jars / name}: expected sha256 {checksum}, got {got}"
    return None


def _require_jars(installation: Installation) -> None:
    """Raise ``MissingRequirement`` when a jar of the table is not there, or the main jar is another one."""
    release, version = installation.release, installation.version
    jar = installation.jars / release.main_jar(version)
    for name in (jar.name, *release.logging_jars):
        if not (installation.jars / name).is_file():
            raise MissingRequirement(f"Maven downloaded Kafka {version} without {name}")
    expected, got = release.main_checksum(version), _sha256(jar)
    if expected is not None and got != expected:
        raise MissingRequirement(
            f"{jar.name}: expected sha256 {expected}, got {got}: the repository has another file than the release"
        )


def _write_checksums(jars: Path) -> None:
    lines = [f"{_sha256(jar)}  {jar.name}\n" for jar in sorted(jars.glob("*.jar"))]
    (jars / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
