"""What runs have left at the engine: found by their labels, removed, and nothing else.

Containers go first, for a network, a volume and the disk behind it that are in use stay. A container's main process
dies with it, and with its network namespace every packet rule in it; a network takes its bridge and the clients'
addresses along. Networks are the first that a run makes and the last that are removed, so what has no label of its own
is never left without one that leads to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from nemesis.runtimes.docker import labels
from nemesis.runtimes.docker.collect import bring_home
from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.disks.errors import DiskError
from nemesis.runtimes.docker.engine_calls import FAILURES, reason

IN_PROGRESS = "already in progress"


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, such as ``network nemesis-0a1b-network``, and what was not, with the reason."""

    names: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __add__(self, other: Removed) -> Removed:
        return Removed(self.names + other.names, self.left + other.left)


def orphaned_runs(client: DockerClient) -> list[str]:
    """Return the ids of runs whose things are here and whose harness is known to be dead; raises the SDK's errors."""
    everything: list[Any] = [
        *client.containers.list(all=True, ignore_removed=True, filters={"label": labels.RUN}),
        *client.networks.list(filters={"label": labels.RUN}),
        *client.volumes.list(filters={"label": labels.RUN}),
    ]
    result = map(labels_of, everything)
    return sorted({marks[labels.RUN] for marks in result if labels.is_orphan(marks)})


def containers(client: DockerClient, run_id: str) -> list[Container]:
    """Return the containers of a run in any state; blocks. Raises the SDK's errors."""
    return client.containers.list(all=True, ignore_removed=True, filters=_of(run_id))


def rescue(client: DockerClient, run_id: str) -> list[str]:
    """End a dead harness's containers and bring home what they recorded, if its run's directory is still there.

    Returns what could not be had; blocks. Raises the SDK's errors.
    """
    result = containers(client, run_id)
    for container in result:
        with suppress(*FAILURES):  # dead already
            container.kill()
    directories = {marks.get(labels.DIRECTORY, "") for marks in map(labels_of, result)} - {""}
    return [
        problem
        for directory in map(Path, sorted(directories))
        if directory.is_dir()
        for problem in bring_home(result, directory).problems
    ]


def remove_run(client: DockerClient, run_id: str) -> Removed:
    """Remove every container, volume, disk and network of a run; blocks.

    Raises the SDK's errors when it cannot list them.
    """
    only = _of(run_id)
    done = remove_each("container", containers(client, run_id), forcibly)
    done += remove_each("volume", client.volumes.list(filters=only), lambda it: it.remove())
    done += remove_disks(run_id)
    done += remove_each("network", client.networks.list(filters=only), lambda it: it.remove())
    return done


def remove_disks(run_id: str) -> Removed:
    """Detach the disks of a run, each whatever becomes of another. Blocks."""
    names: list[str] = []
    left: list[str] = []
    for device in loop.devices_of(run_id):
        try:
            loop.detach(device)
        except DiskError as error:
            left.append(f"disk {device}: {error}")
        else:
            names.append(f"disk {device}")
    return Removed(tuple(names), tuple(left))


def remove_each(kind: str, things: Iterable[Any], how: Callable[[Any], None]) -> Removed:
    """Remove these, each whatever becomes of another; what is gone or going already is nobody's news. Blocks."""
    names: list[str] = []
    left: list[str] = []
    for thing in things:
        try:
            how(thing)
        except NotFound:
            continue
        except FAILURES as error:
            if not (isinstance(error, APIError) and IN_PROGRESS in reason(error)):
                left.append(f"{kind} {thing.name}: {reason(error)}")
            continue
        names.append(f"{kind} {thing.name}")
    return Removed(tuple(names), tuple(left))


def forcibly(container: Container) -> None:
    """Remove a container in any state, and the volumes that have no name; raises the SDK's errors."""
    container.remove(force=True, v=True)


def labels_of(thing: Any) -> dict[str, str]:
    """Return the labels of a container, a network or a volume."""
    attributes: dict[str, Any] = thing.attrs or {}
    result = (attributes.get("Config") or attributes).get("Labels")
    return dict(result or {})


def _of(run_id: str) -> dict[str, str | list[str] | bool]:
    return {"label": f"{labels.RUN}={run_id}"}
