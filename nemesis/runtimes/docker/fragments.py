"""What a build of ours that was broken off has left, and how it is told from everything else.

The engine builds in containers of its own, which it removes when a step is done. A harness that is killed in between
can leave one, with the images of the steps before it. Until its last step an image, and a container made for a step,
is labelled unfinished; what a person starts from a finished image is not.

Builds of one user take turns, so nothing unfinished belongs to a living one when it is this one's turn.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from docker import DockerClient

from nemesis.runtimes.docker.leftovers import Removed, forcibly, remove_each
from nemesis.support.paths import cache_directory

LABEL: Final = "nemesis.image"
"""On every image of ours: the Dockerfile's first instruction says unfinished, its last one ``node``."""

UNFINISHED: Final = {LABEL: "unfinished"}


@contextmanager
def building(*, wait: bool = True) -> Iterator[bool]:
    """Wait until no other process of this user builds; without ``wait``, yield whether there is none.

    The kernel lets go when the process ends. Raises ``MissingRequirement`` or OSError.
    """
    with (cache_directory() / "image.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def remove_fragments(client: DockerClient) -> Removed:
    """Remove what is unfinished, while it is our turn to build; blocks. Raises the SDK's errors."""
    marks = [f"{name}={value}" for name, value in UNFINISHED.items()]
    containers = client.containers.list(all=True, ignore_removed=True, filters={"label": marks})
    done = remove_each("unfinished image's container", containers, forcibly)
    pruned = client.images.prune(filters={"dangling": True, "label": marks})
    gone = [entry["Deleted"] for entry in pruned.get("ImagesDeleted") or () if "Deleted" in entry]
    return done + Removed(tuple(f"unfinished image {name}" for name in gone))
