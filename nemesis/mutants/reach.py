"""Counts whether a planted bug was reached and whether it acted: tells *not reached* from *not seen*.

* *reached*: how often the code that the bug replaces was called.
* *acted*: how often the call gave another result than the correct code would have given.

``Reach`` wraps what a replacement has made. That counts calls of functions, methods and properties; a replaced
constant cannot be counted. To count *acted*, the wrapper also calls the correct function and compares, with the same
``Probe`` as generated mutants. That is sound only if both functions change nothing and await nothing, which the
author of the bug states with ``Replacement.is_comparable``. A count that is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import FunctionType
from typing import Any, Final

from nemesis.mutants.probe import Probe

_RAISED: Final = object()
"""Stands for the result of a function that raises an exception."""


@dataclass(frozen=True, slots=True)
class ReachCounts:
    """What is known of a planted bug after a run."""

    reached: int | None
    """None: the bug replaces nothing that is called."""
    acted: int | None
    """None: a result of the bug cannot be compared."""


class Reach:
    """The counters of one planted bug in one process."""

    def __init__(self) -> None:
        self._probe = Probe()
        self._is_reach_known = False
        self._is_action_known = True

    def counts(self) -> ReachCounts:
        """Return what has been counted so far."""
        is_action_known = self._is_reach_known and self._is_action_known
        return ReachCounts(
            reached=self._probe.reached if self._is_reach_known else None,
            acted=self._probe.effective if is_action_known else None,
        )

    def counted(self, correct: Any, wrong: Any, *, is_comparable: bool) -> Any:
        """Return what does the same as ``wrong`` and is counted; ``wrong`` itself if it cannot be counted."""
        self._is_action_known &= is_comparable
        if isinstance(wrong, property) and isinstance(correct, property):
            getter = self._wrapped(correct.fget, wrong.fget, is_comparable=is_comparable)
            return property(getter, wrong.fset, wrong.fdel)
        if isinstance(wrong, staticmethod | classmethod) and isinstance(correct, type(wrong)):
            inner = self._wrapped(correct.__func__, wrong.__func__, is_comparable=is_comparable)
            return type(wrong)(inner)
        return self._wrapped(correct, wrong, is_comparable=is_comparable)

    def _wrapped(self, correct: Any, wrong: Any, *, is_comparable: bool) -> Any:
        if not isinstance(wrong, FunctionType):
            self._is_action_known = False
            return wrong
        self._is_reach_known = True
        return self._comparing(correct, wrong) if is_comparable else self._counting(wrong)

    def _counting(self, wrong: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(wrong)
        def counting(*arguments: Any, **options: Any) -> Any:
            self._probe.ran()
            return wrong(*arguments, **options)

        return counting

    def _comparing(
        self, correct: Callable[..., Any], wrong: Callable[..., Any]
    ) -> Callable[..., Any]:
        @wraps(wrong)
        def comparing(*arguments: Any, **options: Any) -> Any:
            try:
                expected = correct(*arguments, **options)
            except Exception:  # noqa: BLE001 - only the mutant's exception may reach the caller
                expected = _RAISED
            try:
                result = wrong(*arguments, **options)
            except Exception:
                self._probe.other(expected, _RAISED)
                raise
            return self._probe.other(expected, result)

        return comparing
