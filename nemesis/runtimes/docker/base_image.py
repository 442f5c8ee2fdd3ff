"""What the image of a node is built on: a common image, or one made of the distribution's packages.

The second is for air-gapped laboratories and closed CI. ``compose/base-image.sh`` makes it,
once; then it is preferred to another try to reach one.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException

from nemesis.runtimes.docker.fragments import UNFINISHED
from nemesis.runtimes.docker.ingredients import COMPOSE, DOCKERFILE
from nemesis.runtimes.docker.packages import last_line
from nemesis.support.errors import MissingRequirement

SCRIPT: Final = COMPOSE / "base-image.sh"
REPOSITORY: Final = "nemesis-base"
SCRIPT_TIMEOUT_S: Final = 900.0
CLEANING_TIMEOUT_S: Final = 30.0
TIMED_OUT: Final = 124


def default_base() -> str:
    """Return the base that the Dockerfile names."""
    match = re.search(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    if match is None:
        raise MissingRequirement(f"{DOCKERFILE} names no BASE")
    return match[1]


def own_base() -> str:
    """Return the tag of the base that is made here; another script makes another base."""
    return f"{REPOSITORY}:{hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:12]}"


def ensure_base(client: DockerClient, *, progress: Callable[[str], None]) -> str:
    """Return a base that the engine has, pulled or made when it has none; blocks, for minutes the first time.

    Raises ``MissingRequirement`` when neither can be had.
    """
    for base in (default_base(), own_base()):
        if has_image(client, base):
            return base
    base = default_base()
    progress(f"fetching the image {base}")
    try:
        client.images.pull(base)
    except (DockerException, RequestException) as error:
        return _make(own_base(), progress, why=last_line(str(error)))
    return base


def has_image(client: DockerClient, tag: str) -> bool:
    """Whether the engine has it."""
    try:
        client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def python_version(client: DockerClient, base: str) -> str:
    """Return the version of the base's Python, such as ``3.11``; raises the SDK's errors."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    said: bytes = client.containers.run(
        base, ["python3", "-c", program], remove=True, network_mode="none", labels=UNFINISHED
    )
    return said.decode().strip()


def _make(tag: str, progress: Callable[[str], None], *, why: str) -> str:
    progress(f"{default_base()} cannot be fetched: making a base of the distribution's packages")
    code, said = _run(SCRIPT, tag)
    if code != 0:
        raise MissingRequirement(
            f"there is no base for the cluster's image: {default_base()} cannot be fetched ({why}), "
            f"and none can be made of the distribution's packages ({last_line(said)})"
        )
    return tag


def _run(script: Path, tag: str) -> tuple[int, str]:
    """Return the script's exit code and its errors; broken off, it gets the time to clean up."""
    try:
        process = subprocess.Popen(
            [script, tag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise MissingRequirement(f"{script} cannot be run: {error.strerror}") from None
    with process:
        try:
            _, said = process.communicate(timeout=SCRIPT_TIMEOUT_S)
        except BaseException as error:
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                return TIMED_OUT, f"it was not made in {SCRIPT_TIMEOUT_S:.0f} s"
            raise
    return process.returncode, said


def _end(process: subprocess.Popen[str]) -> None:
    """End the script and all that it has started; it takes away what it has made, if it does so in time."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(CLEANING_TIMEOUT_S)
            return
