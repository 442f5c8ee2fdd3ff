"""From the effective compose file to containers: what the file says, in the engine's words.

The file is what a person can bring up by hand, so it is the one description of the cluster. Only the keys that ours
use are understood; any other is an error, because a setting that is passed over in silence would make the two
clusters differ.

Three differences are wanted: the harness watches the nodes itself, so containers of a run have no health checks (each
would start a process in a node every few seconds); it adds its labels, so that what a dead harness left can be found;
and a broker's logs are on a disk of its own where the machine can have one (``disks``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from docker.models.containers import Container
from docker.types import LogConfig, Mount, NetworkingConfig

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.docker import labels

UNDERSTOOD: Final = frozenset(
    {
        "image",
        "container_name",
        "hostname",
        "entrypoint",
        "command",
        "environment",
        "labels",
        "volumes",
        "networks",
        "mem_limit",
        "cap_add",
        "restart",
        "logging",
        "stop_grace_period",
        "healthcheck",
        "depends_on",
    }
)
NO_HEALTH_CHECK: Final = {"test": ["NONE"]}


def create_volumes(
    client: DockerClient,
    volumes: Mapping[str, Any],
    marks: Mapping[str, str],
    devices: Mapping[str, str],
) -> None:
    """Make these volumes of a file, those with a device on it; blocks. Raises the SDK's errors.

    The engine mounts a device when a container with its volume starts, and unmounts it at the container's end.
    """
    for key, volume in volumes.items():
        device = devices.get(key)
        client.volumes.create(
            volume["name"],
            labels={**volume.get("labels", {}), **marks},
            driver="local",
            driver_opts={"type": "ext4", "device": device} if device else {},
        )


def create_container(
    client: DockerClient,
    composed: Mapping[str, Any],
    node: str,
    marks: Mapping[str, str],
    directory: Path,
) -> Container:
    """Make the container of a service, not started; blocks. The networks and volumes of the file are there already.

    ``directory`` is where the file is: paths in it begin there.
    Raises ``RuntimeFailure`` for a file that says what we do not understand, and the SDK's errors.
    """
    service: Mapping[str, Any] = composed["services"][node]
    if foreign := sorted(set(service) - UNDERSTOOD):
        raise RuntimeFailure(f"the compose file says {foreign[0]!r} of {node}: not understood")
    api = client.api
    ((network, settings),) = service["networks"].items()
    mounts = [_mount(volume, composed, directory) for volume in service.get("volumes", ())]
    logging = service.get("logging") or {"driver": LogConfig.types.JSON}
    host = api.create_host_config(
        mounts=mounts,
        mem_limit=service.get("mem_limit"),
        cap_add=service.get("cap_add"),
        restart_policy={"Name": service.get("restart", "no")},
        log_config=LogConfig(type=logging["driver"], config=logging.get("options", {})),
    )
    endpoint = api.create_endpoint_config(ipv4_address=settings["ipv4_address"])
    attached = {composed["networks"][network]["name"]: endpoint}
    made = api.create_container(
        service["image"],
        command=service.get("command"),
        entrypoint=service.get("entrypoint"),
        name=service["container_name"],
        hostname=service.get("hostname"),
        environment=service.get("environment"),
        labels={**service.get("labels", {}), **marks, labels.NODE: node},
        healthcheck=NO_HEALTH_CHECK,
        stop_timeout=seconds(service.get("stop_grace_period", "10s")),
        host_config=host,
        networking_config=NetworkingConfig(attached),  # type: ignore[arg-type]  # the stub has it wrong
    )
    return client.containers.get(made["Id"])


def seconds(duration: str) -> int:
    """Return what ``3s`` says; raises ``RuntimeFailure`` for a duration in other units."""
    number, unit = duration[:-1], duration[-1:]
    if unit != "s" or not number.isdigit():
        raise RuntimeFailure(
            f"the compose file has the duration {duration!r}: only seconds are understood"
        )
    return int(number)


def _mount(volume: str, composed: Mapping[str, Any], directory: Path) -> Mount:
    """``NAME:/path``, where the file says what the volume of that name is really called, or ``./FILE:/path:ro``, or
    ``/FILE:/path:ro``.
    """
    name, path, *mode = volume.split(":")
    is_read_only = mode == ["ro"]
    if name.startswith(("./", "/")):
        return Mount(path, str(directory / name), type="bind", read_only=is_read_only)
    if name not in (composed.get("volumes") or {}):
        raise RuntimeFailure(f"the compose file has no volume {name!r}")
    return Mount(path, composed["volumes"][name]["name"], type="volume", read_only=is_read_only)
