"""Why this machine cannot give brokers disks of their own, found out by making one, breaking it and mending it."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from nemesis.runtimes.docker.disks import loop
from nemesis.runtimes.docker.disks.disk import Disk
from nemesis.runtimes.docker.disks.errors import DiskError

SIZE_BYTES = 16 * 2**20
OWN_USERS = "name=userns"


def find_obstacle(engine: dict[str, Any]) -> str:
    """Return one sentence; empty when all is there. ``engine`` is what the Docker engine says of itself. Blocks."""
    if os.geteuid() != 0:
        return "brokers have disks of their own only with root's rights"
    if OWN_USERS in (engine.get("SecurityOptions") or ()):
        return "the Docker engine gives containers users of their own"
    name = uuid.uuid4().hex[:12]
    try:
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                closing(Disk.make(Path(folder), name, "scratch", size_bytes=SIZE_BYTES)) as disk,
            ):
                disk.cut_power()
        finally:
            for device in loop.devices_of(name):
                loop.detach(device)
    except (DiskError, OSError) as error:
        return f"brokers cannot have disks of their own: {error}"
    return ""
