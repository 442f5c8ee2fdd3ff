"""What a user asks of the checks of an external history: one form for all workloads, each takes what it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of one check."""

    consistency_model: str | None
    """What transactions are held against; None for strict-serializable, as in Elle."""
    anomalies: Sequence[str]
    """Those that are forbidden in place of a model."""
    initial: int | None
    """The number of the initial value of registers; None if it is not stated."""
    key_options: Sequence[str]
    """What each key of registers keeps (``nemesis.checkers.cycles.key_options``)."""
    judged: frozenset[str]
    """The properties whose results are used."""
    has_real_time: bool
    """Whether the history states it."""


@runtime_checkable
class HasOptions(Protocol):
    """A check that can be asked for in several ways."""

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        """Return the check with the options that it has."""
        ...
