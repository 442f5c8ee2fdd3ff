"""axe-core, the accessibility checker, from npm: fetched when a test needs it, with a pinned checksum."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

VERSION: Final = "4.14.1"
SHA256: Final = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
TIMEOUT_S: Final = 60


class UnavailableError(Exception):
    """The package cannot be fetched on this machine. The message is the reason."""


def fetch(directory: Path) -> str:
    """Return the script; raises UnavailableError. A package with another checksum is an AssertionError."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnavailableError("npm is not installed")
    command = [npm, "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", str(directory)]
    try:
        subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"npm cannot fetch axe-core {VERSION}: {error}") from error
    package = directory / f"axe-core-{VERSION}.tgz"
    assert hashlib.sha256(package.read_bytes()).hexdigest() == SHA256
    with tarfile.open(package) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()
