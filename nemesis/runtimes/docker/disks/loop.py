"""Block devices made of files, by ``losetup``, which also meets the race of several programs for a free device.

An image has no name any more once it is attached: its space is free when its device is detached, or the machine is
restarted. The kernel still tells the name that it had, which begins with that of the run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from nemesis.runtimes.docker.disks.errors import DiskError

DEVICES = Path("/sys/block")
DELETED = " (deleted)"
COMMAND_TIMEOUT_S = 20.0
DETACH_TIMEOUT_S = 10.0
"""For mounts that the engine is still about to let go."""
POLL_INTERVAL_S = 0.02


def image_name(run_id: str, node: str) -> str:
    """Return what the image of a node's disk is called."""
    return f"{_prefix(run_id)}{node}.ext4"


def attach(image: Path) -> str:
    """Return the new device of an image, whose name is given up; raises ``DiskError``."""
    try:
        return run("losetup", "--find", "--show", str(image)).strip()
    finally:
        image.unlink()


def devices_of(run_id: str) -> list[str]:
    """Return the devices of a run's disks, in order; of all runs' disks for an empty id."""
    return sorted(
        f"/dev/{entry.name}"
        for entry in DEVICES.glob("loop*")
        if _image_of(entry).startswith(_prefix(run_id))
    )


def detach(device: str) -> None:
    """Let a device go and see that it is gone; raises ``DiskError`` when somebody keeps it."""
    image = _image_of(DEVICES / Path(device).name)
    run("losetup", "--detach", device)
    deadline = time.monotonic() + DETACH_TIMEOUT_S
    while image and _image_of(DEVICES / Path(device).name) == image:
        if time.monotonic() > deadline:
            raise DiskError(f"{device} is in use")
        time.sleep(POLL_INTERVAL_S)


def run(*command: str) -> str:
    """Return what a command prints; raises ``DiskError`` with its own words when it fails."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S
        )
    except OSError as error:
        raise DiskError(f"{command[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise DiskError(f"{_readable(command)} did not end") from None
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"it exited with code {done.returncode}"
        raise DiskError(f"{_readable(command)} failed: {said}")
    return done.stdout


def _prefix(run_id: str) -> str:
    return f"nemesis-{run_id}-" if run_id else "nemesis-"


def _image_of(entry: Path) -> str:
    """Return the name that a device's image has or had; empty for a device without one."""
    try:
        path = (entry / "loop" / "backing_file").read_text().rstrip("\n")
    except OSError:
        return ""
    return Path(path.removesuffix(DELETED)).name


def _readable(command: Sequence[str]) -> str:
    return " ".join(command)
