"""Lives that end before their n-th change of a disk."""

from __future__ import annotations

from nemesis.simulation.disk import SimulatedDisk


class Killed(BaseException):
    """The process ends here; what was written stays, as with SIGKILL."""


class Mortal:
    """Lives for so many changes; for ever while ``changes_left`` is None. ``FencedDisk`` asks it before each."""

    is_dead = False

    def __init__(self, changes_left: int | None = None) -> None:
        self.changes_left = changes_left

    def act(self) -> None:
        if self.changes_left is None:
            return
        if self.changes_left == 0:
            raise Killed
        self.changes_left -= 1


class MortalDisk(SimulatedDisk):
    """Of one life; unlike through ``FencedDisk`` it may end within ``replace``, too, and leave a temporary file."""

    def __init__(self) -> None:
        super().__init__()
        self.incarnation = Mortal()

    def append(self, path: str, data: bytes) -> None:
        self.incarnation.act()
        super().append(path, data)

    def truncate(self, path: str, size: int) -> None:
        self.incarnation.act()
        super().truncate(path, size)

    def fsync(self, path: str) -> None:
        self.incarnation.act()
        super().fsync(path)

    def replace(self, path: str, data: bytes) -> None:
        self.incarnation.act()
        super().replace(path, data)

    def rename(self, source: str, target: str) -> None:
        self.incarnation.act()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.incarnation.act()
        super().remove(path)
