"""What users choose by name: an unknown name becomes one sentence with the allowed ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from nemesis.registry import Registry, UnknownNameError, unknown
from nemesis.support.errors import UsageError

T = TypeVar("T")


def choose(registry: Registry[T], name: str) -> T:
    """Return the object that is registered under this name; raises ``UsageError`` with the names that exist."""
    try:
        return registry.find(name)
    except UnknownNameError as error:
        raise UsageError(str(error)) from None


def one_of(label: str, value: str, allowed: Collection[str]) -> None:
    """Raise ``UsageError`` naming the value and the allowed ones when it is none of them."""
    if value not in allowed:
        raise UsageError(unknown(label, value, allowed))
