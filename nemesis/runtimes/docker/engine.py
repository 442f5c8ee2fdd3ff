"""The way to the Docker engine, or one sentence that says why there is none.

Partitions are made in the containers' network namespaces, from the host. So the engine must run on this very machine,
and the harness needs root: a remote engine, or one in a virtual machine, is refused.

Sources: the SDK's documentation; ``docker version`` for the API versions (1.41 came with Docker 20.10).
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from pathlib import Path
from typing import Final

import docker
from docker import DockerClient
from docker.errors import DockerException

from nemesis.support.errors import MissingRequirement

MINIMUM_API: Final = (1, 41)
MINIMUM_ENGINE: Final = "20.10"

TIMEOUT_S: Final = 60
"""For one answer of the engine; stopping and starting a container takes a second or two."""

MINIMUM_FREE_BYTES: Final = 2**30
"""Image and base together, and what a run's containers write."""

HOST_TOOLS: Final = {
    "nsenter": "util-linux",
    "iptables": "iptables",
    "ip": "iproute2",
    "tc": "iproute2",
}
"""Programs that act in a container's network namespace, and the distribution's packages that hold them."""

IN_A_VIRTUAL_MACHINE: Final = "Docker Desktop"
ROOTLESS: Final = "name=rootless"
"""What engines say of themselves that cannot do."""

UNIX: Final = "unix://"
DEFAULT_ADDRESS: Final = f"{UNIX}/var/run/docker.sock"
AS_ROOT: Final = "run nemesis with sudo"
START_DOCKER: Final = "start it (`sudo systemctl start docker`)"
GET_DOCKER: Final = "install it (Debian and Ubuntu: `sudo apt-get install docker.io`)"


def connect() -> DockerClient:
    """Return a client of this machine's engine that has answered; close it after use.

    Raises ``MissingRequirement`` with one sentence: no engine, no permission, too old, not on this machine.
    """
    address = os.environ.get("DOCKER_HOST", DEFAULT_ADDRESS)
    if not address.startswith(UNIX):
        raise MissingRequirement(
            f"DOCKER_HOST is {address}: the runtime docker needs an engine on this machine, "
            "because faults are made in the containers' network namespaces"
        )
    _reach(Path(address.removeprefix(UNIX)))
    try:
        client = docker.from_env(timeout=TIMEOUT_S)
    except DockerException as error:
        raise MissingRequirement(
            f"the Docker engine at {address} cannot be used: {error}"
        ) from None
    try:
        refuse_unfit(client)
    except BaseException:
        client.close()
        raise
    return client


def _reach(path: Path) -> None:
    """Open the engine's socket once: its errors say what the SDK's, which wrap them several times, do not."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(TIMEOUT_S)
            probe.connect(str(path))
    except PermissionError:
        raise MissingRequirement(
            f"you may not use the Docker engine at {path}: {AS_ROOT}"
        ) from None
    except FileNotFoundError:
        if shutil.which("dockerd") is None:
            raise MissingRequirement(f"no Docker engine was found: {GET_DOCKER}") from None
        raise MissingRequirement(
            f"no Docker engine runs ({path} does not exist): {START_DOCKER}"
        ) from None
    except OSError as error:
        raise MissingRequirement(
            f"no Docker engine answers at {path} ({error.strerror or error}): {START_DOCKER}"
        ) from None


def refuse_unfit(client: DockerClient) -> None:
    """Raise ``MissingRequirement`` when this engine cannot do what the runtime needs."""
    try:
        version, info = client.version(), client.info()
    except (DockerException, OSError) as error:
        raise MissingRequirement(f"the Docker engine does not answer ({error})") from None
    api = str(version.get("ApiVersion", ""))
    if api_version(api) < MINIMUM_API:
        raise MissingRequirement(
            f"Docker {version.get('Version', '?')} with API {api or '?'} is too old: "
            f"install Docker {MINIMUM_ENGINE} or newer"
        )
    if info.get("OSType") != "linux" or not sys.platform.startswith("linux"):
        raise MissingRequirement(
            "the runtime docker needs Linux, with the engine on the machine itself: "
            f"here is {sys.platform}, and the engine runs {info.get('OperatingSystem', 'something else')}"
        )
    if info.get("OperatingSystem") == IN_A_VIRTUAL_MACHINE:
        raise MissingRequirement(
            "Docker Desktop runs its engine in a virtual machine, where the containers' network namespaces are out of "
            f"reach: {GET_DOCKER}"
        )
    if ROOTLESS in (info.get("SecurityOptions") or ()):
        raise MissingRequirement(
            "the Docker engine runs without root's rights, so its networks are not this machine's: "
            "use the one that the system starts"
        )


def require_space(directory: Path) -> None:
    """Raise ``MissingRequirement`` when where the engine keeps everything is full, or is not on this machine."""
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        raise MissingRequirement(
            f"the Docker engine keeps its files in {directory}, which is not on this machine ({error.strerror}): "
            "the runtime docker needs an engine on the machine itself"
        ) from None
    if free < MINIMUM_FREE_BYTES:
        raise MissingRequirement(
            f"the Docker engine has {free / 2**20:,.0f} MiB left in {directory}: "
            f"free {MINIMUM_FREE_BYTES / 2**20:,.0f} MiB (`docker system df` says what is there)"
        )


def require_docker() -> str:
    """Return what there is, in a few words; raises ``MissingRequirement`` for the first thing that is missing.

    Besides the engine that is root, and the programs that make faults.
    """
    client = connect()
    try:
        version = client.version()
        require_space(Path(client.info()["DockerRootDir"]))
    finally:
        client.close()
    if os.geteuid() != 0:
        raise MissingRequirement(
            "the runtime docker needs root, to drop packets in the containers' network namespaces: "
            f"{AS_ROOT}"
        )
    for tool, package in HOST_TOOLS.items():
        if shutil.which(tool) is None:
            raise MissingRequirement(
                f"the runtime docker needs `{tool}`: install it "
                f"(Debian and Ubuntu: `sudo apt-get install {package}`)"
            )
    return f"Docker {version['Version']}, API {version['ApiVersion']}"


def api_version(text: str) -> tuple[int, ...]:
    """Return ``1.41`` as numbers that compare; nothing for what is no version."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d+(\.\d+)+", text) else ()
