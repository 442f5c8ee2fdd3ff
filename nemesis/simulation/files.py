"""Files and directories in memory, with what the medium would still know of them after a power cut.

A file is its contents as processes see them (the page cache) and the changes since it was last synced, each as what
it takes to undo it. A power cut leaves the file as it was after some of these changes; of what was written since the
last sync a tail may be missing besides, in the middle of a write, or be zeros where the length had reached the medium
but the data had not.

Names and truncations have a journal, in one order for the whole disk, as ext4 and XFS have: a power cut keeps a
prefix of it. Syncing a file makes the journal last up to that file's latest change, hence its own name and the names
of the directories above it. One rename is one entry: it happened or it did not.

Limits: a disk that lies about a flush is not modelled, nor one that loses a page in the middle of those it keeps, nor
a file system without such a journal, where a directory must be synced for its names to last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

_NOT_JOURNALLED = 0


class Change(NamedTuple):
    """Since it was made, the file holds something else from ``start`` on than ``before``."""

    start: int
    before: bytes
    entry: int
    """Its number in the journal when it is a truncation."""


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
        """How many entries the journal had at the latest change."""

    def append(self, data: bytes, journal: Journal) -> None:
        self.changes.append(Change(len(self.data), b"", _NOT_JOURNALLED))
        self.data += data
        self.changed_in = journal.position

    def truncate(self, size: int, journal: Journal) -> None:
        """Cut the file to that size, or lengthen it with zeros."""
        journal.change()
        self.changed_in = journal.position
        kept = min(size, len(self.data))
        self.changes.append(Change(kept, bytes(self.data[kept:]), journal.position))
        del self.data[kept:]
        self.data += bytes(size - kept)

    def sync(self) -> None:
        self.changes.clear()

    def unsynced_bytes(self) -> int:
        """Bytes from the first unsynced change on."""
        return len(self.data) - min((c.start for c in self.changes), default=len(self.data))

    def cut_power(self, rng: Random, journalled: int) -> Remains:
        """Lose what had not reached the medium, where that many entries of the journal had; what is left has."""
        if not self.changes:
            return Remains(0, 0, is_torn=False)
        size_before = len(self.data)
        kept = self._survivors(rng, journalled)
        lost = self.changes[kept:]
        for change in reversed(lost):
            self.data[change.start :] = change.before
        synced = min((change.start for change in self.changes[:kept]), default=len(self.data))
        size = len(self.data)
        zeros = 0
        is_torn = size > synced and rng.random() < 0.5
        if is_torn:
            del self.data[rng.randint(synced, size - 1) :]
            if rng.random() < 0.5:
                zeros = size - len(self.data)
                self.data += bytes(zeros)
        self.changes.clear()
        lost_bytes = max(0, size_before - (len(self.data) - zeros))
        return Remains(len(lost), lost_bytes, is_torn)

    def _survivors(self, rng: Random, journalled: int) -> int:
        """Return how many of the changes happened: all truncations that are in the journal, and no others."""
        least, most = 0, len(self.changes)
        for number, change in enumerate(self.changes):
            if change.entry == _NOT_JOURNALLED:
                continue
            if change.entry > journalled:
                most = number
                break
            least = number + 1
        return rng.randint(least, most)


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
class Journal:
    """The changes of names and the truncations that may still be lost, in order; each is undone as a whole."""

    _first: int = 0
    """How many were committed before those kept here."""
    _entries: list[tuple[Link, ...]] = field(default_factory=list)

    @property
    def position(self) -> int:
        """How many entries there were so far, committed ones included."""
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
        """Make the entries up to this position last."""
        count = position - self._first
        if count > 0:
            del self._entries[:count]
            self._first = position

    def cut_power(self, rng: Random) -> tuple[int, int]:
        """Undo the names of all but a prefix of what was not committed.

        Returns the position up to which the journal is kept, and how many changes of names were lost.
        """
        kept = rng.randint(0, len(self._entries))
        lost = [links for links in self._entries[kept:] if links]
        for links in reversed(lost):
            for link in reversed(links):
                _point(*link)
        journalled = self._first + kept
        self.commit(self.position)
        return journalled, len(lost)


def _point(directory: Directory, name: str, node: Node | None) -> None:
    if node is None:
        directory.entries.pop(name, None)
    else:
        directory.entries[name] = node
