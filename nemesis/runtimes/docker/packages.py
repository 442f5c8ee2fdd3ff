"""The packages that brokers import, for the image's own Python, without a network in the image.

They have the versions that are installed here, and come in wheels that are unpacked on this machine. Each set is
fetched once and kept in the user's cache.

Sources: PEP 425 and 600 for the platforms of wheels; ``pip install --target`` for unpacking without an interpreter.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from nemesis.support.errors import MissingRequirement
from nemesis.support.paths import cache_directory

THIRD_PARTY: Final = ("crc32c", "cramjam", "kazoo", "kio", "msgspec")
MANYLINUX: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
PIP_TIMEOUT_S: Final = 300.0


def pinned(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``name==version`` of these distributions and of all that they require, as installed here; sorted.

    Raises ``MissingRequirement`` for one that is not installed.
    """
    versions: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in versions:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise MissingRequirement(f"{name} is not installed: run `make install`") from None
        versions[name] = distribution.version
        for requirement in distribution.requires or ():
            wanted, _, marker = requirement.partition(";")
            # The few packages concerned use markers for extras only.
            if "extra" not in marker and (match := re.match(r"[\w.-]+", wanted.strip())):
                waiting.append(match[0])
    return tuple(f"{name}=={version}" for name, version in sorted(versions.items()))


def unpacked(packages: tuple[str, ...], python: str) -> Path:
    """Return a folder with these packages for this Python (such as ``3.11``) on Linux; raises ``MissingRequirement``.

    It is in the user's cache, whole or not there at all.
    """
    key = hashlib.sha256("\0".join((*packages, python, platform.machine())).encode()).hexdigest()
    folder = cache_directory() / f"packages-{key[:16]}"
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="draft-") as draft:
        target = Path(draft) / "packages"
        _install(packages, python, target)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # somebody else was faster
                raise
    return folder


def _install(packages: tuple[str, ...], python: str, target: Path) -> None:
    machine = platform.machine()
    platforms = [f"--platform={manylinux}_{machine}" for manylinux in MANYLINUX]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-compile", "--only-binary=:all:", f"--target={target}"]
    command += [f"--python-version={python}", *platforms, *packages]
    try:
        pip = subprocess.run(
            command, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise MissingRequirement(
            f"the packages of the cluster's image could not be had in {PIP_TIMEOUT_S:.0f} s"
        ) from None
    if pip.returncode != 0:
        raise MissingRequirement(
            f"the packages of the cluster's image ({', '.join(packages)}) could not be had: {last_line(pip.stderr)}"
        )


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason was given"
