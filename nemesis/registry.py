"""Registries: what a user chooses by name (a fault, a checker, a workload, a target, a runtime, a mutant).

A registry maps names to objects of one type, in the order of registration. Each package owns the registry of its
axis (``nemesis.faults.FAULTS``, ``nemesis.checkers.CHECKERS``, ...) and registers its own objects when it is imported;
``nemesis.scenarios.axes`` gathers all of them. Objects of users go the same way: one call of ``register``.

This module imports nothing of ours, so every package may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Generic, Protocol, TypeVar


class RegistryError(Exception):
    """A name is unknown, or is registered twice. The message is one sentence for the user."""


class UnknownNameError(RegistryError):
    """Nothing has this name. The message lists the names that exist."""


class DuplicateNameError(RegistryError):
    """Two objects claim one name. The message names both; rename one of them."""


class Named(Protocol):
    """An object, or a class, that knows the name under which users choose it."""

    @property
    def name(self) -> str: ...


T = TypeVar("T")
N = TypeVar("N", bound=Named)


class Registry(Mapping[str, T], Generic[T]):
    """The objects of one axis by name. ``kind`` is the singular noun that messages use: ``fault``, ``checker``."""

    def __init__(
        self,
        kind: str,
        entries: Iterable[tuple[str, T]] = (),
        load: Callable[[], Iterable[tuple[str, T]]] | None = None,
    ) -> None:
        """Register ``entries``, pairs of name and object, in their order. Raises ``DuplicateNameError``.

        ``load`` returns entries that are registered at the first use of the registry.
        """
        self.kind = kind
        self._known: dict[str, T] = {}
        self._load = load
        for name, entry in entries:
            self._add(name, entry)

    @property
    def _entries(self) -> dict[str, T]:
        if self._load is not None:
            load, self._load = self._load, None
            for name, entry in load():
                self._add(name, entry)
        return self._known

    def register(self, name: str, entry: T) -> None:
        """Add an object as the last one. Raises ``DuplicateNameError`` when another object has the name already."""
        assert self._entries is self._known
        self._add(name, entry)

    def _add(self, name: str, entry: T) -> None:
        known = self._known.setdefault(name, entry)
        if known is not entry:
            raise DuplicateNameError(
                f"{self.kind} {name!r}: expected one object of this name, got two, {_described(known)} and "
                f"{_described(entry)}: rename one of them"
            )

    def find(self, name: str) -> T:
        """Return the object of this name. Raises ``UnknownNameError``, where ``registry[name]`` raises KeyError."""
        if name not in self._entries:
            raise UnknownNameError(unknown(self.kind, name, self._entries))
        return self._entries[name]

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} entries of kind {self.kind}>"


def by_name(entries: Iterable[N]) -> Iterator[tuple[str, N]]:
    """Yield (name, object) for objects or classes with a ``name``, as ``Registry`` takes them."""
    return ((entry.name, entry) for entry in entries)


def unknown(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Return the sentence about a name that does not exist, with the name that was probably meant."""
    names = sorted(allowed)
    return f"unknown {kind} {name!r}{hint(name, names)}: allowed are {', '.join(names) or 'none'}"


def hint(name: str, allowed: Iterable[str]) -> str:
    """Return a question that suggests the most similar of the allowed names; empty if no name is similar."""
    by_folded = {other.casefold(): other for other in allowed}
    similar = get_close_matches(name.casefold(), list(by_folded), n=1)
    return f" (did you mean {by_folded[similar[0]]!r}?)" if similar else ""


def _described(entry: object) -> str:
    """Return where an object comes from: its own dotted name, or its type's."""
    owner = entry if hasattr(entry, "__qualname__") else type(entry)
    return f"{owner.__module__}.{owner.__qualname__}"
