"""Files and directories in memory, with what the medium would still know of them after a power cut.

A file is its contents as processes see them (the page cache) and the changes since it was last synced, each as what
it takes to undo it. A power cut keeps a prefix of these changes; the first one that is lost may be torn: a part of
the write is there, and behind it there may be zeros where the length had reached the medium but the data had not.

Names have a journal of their own, in one order for the whole disk, as the journals of ext4 and XFS do: a power cut
keeps a prefix of it. Syncing a file makes the journal last up to that file's latest change, hence its own name and
the names of the directories above it. One rename is one entry: it happened or it did not.

Limits: inside one file writes reach the medium in order. A disk that reorders them, or that lies about a flush, is
not modelled, nor is a file system without such a journal, where a directory must be synced for its names to last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

_UNTORN, _TORN, _ZEROED = range(3)


class Change(NamedTuple):
    """Since it was made, the file holds something else from ``start`` on than ``before``."""

    start: int
    before: bytes


class Remains(NamedTuple):
    """What a power cut did to one file. ``lost_bytes`` counts written bytes that are gone or zero."""

    lost_changes: int
    lost_bytes: int
    is_torn: bool


class File:
    """Contents, and the changes that are not synced, in order."""

    __slots__ = ("changed_in", "changes", "data")

    def __init__(self, changed_in: int) -> None:
        self.data = bytearray()
        self.changes: list[Change] = []
        self.changed_in = changed_in
        """How many entries the journal of names had at the latest change."""

    def append(self, data: bytes) -> None:
        self.changes.append(Change(len(self.data), b""))
        self.data += data

    def truncate(self, size: int) -> None:
        """Cut the file to that size, or lengthen it with zeros."""
        kept = min(size, len(self.data))
        self.changes.append(Change(kept, bytes(self.data[kept:])))
        del self.data[kept:]
        self.data += bytes(size - kept)

    def sync(self) -> None:
        self.changes.clear()

    def unsynced_bytes(self) -> int:
        """Bytes from the first unsynced change on."""
        return len(self.data) - min((c.start for c in self.changes), default=len(self.data))

    def cut_power(self, rng: Random) -> Remains:
        """Lose what had not reached the medium; what is left has."""
        count = len(self.changes)
        if not count:
            return Remains(0, 0, is_torn=False)
        size_before = len(self.data)
        survivors = rng.randint(0, count)
        lost, is_torn = self.changes[survivors:], False
        zeros = 0
        for change in reversed(lost[1:]):
            self._undo(change)
        if lost:
            style = rng.choice((_UNTORN, _TORN, _ZEROED))
            added = len(self.data) - lost[0].start
            part = rng.randint(0, added)
            if style == _UNTORN or lost[0].before:
                self._undo(lost[0])
            else:
                is_torn = True
                del self.data[lost[0].start + part :]
                if style == _ZEROED:
                    zeros = added - part
                    self.data += bytes(zeros)
        self.changes.clear()
        lost_bytes = max(0, size_before - (len(self.data) - zeros))
        return Remains(len(lost), lost_bytes, is_torn)

    def _undo(self, change: Change) -> None:
        self.data[change.start :] = change.before


class Directory:
    """Names, in the order in which they came."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}


Node = File | Directory


class Link(NamedTuple):
    """A name of a directory and what it stood for before; None for nothing."""

    directory: Directory
    name: str
    before: Node | None


@dataclass(slots=True)
class NameJournal:
    """The changes of names that may still be lost, in order; each is undone as a whole."""

    _first: int = 0
    """How many were committed before those kept here."""
    _entries: list[tuple[Link, ...]] = field(default_factory=list)

    @property
    def position(self) -> int:
        """How many changes there were so far, committed ones included."""
        return self._first + len(self._entries)

    def change(self, *changes: tuple[Directory, str, Node | None]) -> None:
        """Let each (directory, name) stand for the node, or for nothing, all at once."""
        self._entries.append(
            tuple(
                Link(directory, name, directory.entries.get(name)) for directory, name, _ in changes
            )
        )
        for directory, name, node in changes:
            _point(directory, name, node)

    def commit(self, position: int) -> None:
        """Make the changes up to this position last."""
        count = position - self._first
        if count > 0:
            del self._entries[:count]
            self._first = position

    def cut_power(self, rng: Random) -> int:
        """Undo all but a prefix of what was not committed; return how many changes were lost."""
        if not self._entries:
            return 0
        lost = self._entries[rng.randint(0, len(self._entries)) :]
        for links in reversed(lost):
            for link in reversed(links):
                _point(*link)
        self.commit(self.position)
        return len(lost)


def _point(directory: Directory, name: str, node: Node | None) -> None:
    if node is None:
        directory.entries.pop(name, None)
    else:
        directory.entries[name] = node
