"""Whether this machine can run containers, and what is at its engine. As a program it builds the image of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from docker import DockerClient

from nemesis.runtimes.docker import compose_file, labels
from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.engine import connect, require_docker
from nemesis.runtimes.docker.image import ensure_image
from nemesis.support.errors import MissingRequirement


def why_not() -> str:
    """Return why there can be no containers here; empty when there can."""
    try:
        require_docker()
    except MissingRequirement as error:
        return str(error)
    return ""


needs_docker = pytest.mark.skipif(bool(reason := why_not()), reason=reason or "there is Docker")


@contextmanager
def engine() -> Iterator[DockerClient]:
    """A client of the engine."""
    with closing(connect()) as client:
        yield client


def build_image() -> None:
    """Have the image built, so that no test measures it: their time limits are of the functions only."""
    with engine() as client:
        ensure_image(client, progress=print)


def things(run_id: str = "") -> list[str]:
    """Return all containers, networks, volumes and disks of a run, or of all runs."""
    label = labels.RUN if not run_id else f"{labels.RUN}={run_id}"
    with engine() as client:
        containers = client.containers.list(all=True, ignore_removed=True, filters={"label": label})
        networks = client.networks.list(filters={"label": label})
        volumes = client.volumes.list(filters={"label": label})
        return sorted(
            [f"container {container.name}" for container in containers]
            + [f"network {network.name}" for network in networks]
            + [f"volume {volume.name}" for volume in volumes]
            + [f"disk {device}" for device in loop.devices_of(run_id)]
        )


def run_id_of(run: Path) -> str:
    """Return what the containers of a run are labelled with, from the compose file in its directory."""
    services = compose_file.read(run / compose_file.FILE_NAME)["services"]
    (run_id,) = {service["labels"][labels.RUN] for service in services.values()}
    return str(run_id)


if __name__ == "__main__" and not reason:
    build_image()
