"""Counts at the changed code of a mutant whether it ran, and whether the original would have done something else.

Generated code calls the one ``Probe`` of its process. Each method does what the mutant does and compares that with what
the original would have done. Operands are evaluated once, in the original sequence, and nothing waits: a method changes
neither the schedule nor the random numbers of a simulated run.

* *reached*: the changed code ran.
* *effective*: at least once it gave another value, took another branch, or left out an effect.

Values are compared with ``==``. A container that is replaced by an equal one therefore counts as no effect, though code
that holds the old container may differ later; the caller that runs a mutant compares the traces, too.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

NAME: Final = "__nemesis_probe__"
"""Under this name a mutated module knows its probe. Python does not mangle it in classes."""

_MISSING: Final = object()
_CONTAINERS: Final = (set, frozenset, dict, list, deque)
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, container: item in container,
    "NotIn": lambda item, container: item not in container,
}


class Probe:
    """The counters of one mutant in one process. ``note`` is called at the first reach and at the first effect."""

    def __init__(self, note: Callable[[Probe], None] = lambda _probe: None) -> None:
        self.reached = 0
        """How often the changed code ran."""
        self._differences = 0
        self._pending = 0
        self._note = note

    @property
    def effective(self) -> int:
        """How often it did something else than the original: also by raising where the original did not."""
        return self._differences + self._pending

    def _count(self, *, differs: bool) -> None:
        self.reached += 1
        is_first = differs and not self._differences
        self._differences += differs
        if is_first or self.reached == 1:
            self._note(self)

    def ran(self) -> None:
        """The changed code runs; whether it does something else is not known."""
        self._count(differs=False)

    # Values

    def compared(self, original: str, mutant: str, left: Any, right: Any) -> Any:
        """Compare by the mutant's operator; the arguments are names of ``ast`` operators."""
        expected, result = _COMPARISONS[original](left, right), _COMPARISONS[mutant](left, right)
        self._count(differs=bool(expected) is not bool(result))
        return result

    def compared_with(self, name: str, left: Any, right: Any, other: Any, side: str) -> Any:
        """Compare with ``other`` on one side (``left`` or ``right``)."""
        compare = _COMPARISONS[name]
        result = compare(other, right) if side == "left" else compare(left, other)
        self._count(differs=bool(compare(left, right)) is not bool(result))
        return result

    def chained(self, original: tuple[str, ...], mutant: tuple[str, ...], *operands: Any) -> bool:
        """Compare neighbours by the mutant's operators; all operands are free of side effects."""
        result = _holds(mutant, operands)
        self._count(differs=_holds(original, operands) is not result)
        return result

    def original(self, value: Any) -> Any:
        """Remember that the original's value is known and the mutant's is not yet: evaluating it may raise."""
        self._pending += 1
        return value

    def replaced(self, original: Any, result: Any) -> Any:
        """Return the mutant's value; ``original`` came through ``original()``."""
        self._pending -= 1
        self._count(differs=_differ(original, result))
        return result

    def other(self, original: Any, result: Any) -> Any:
        """Return the mutant's value; both were free to compute and could not raise."""
        self._count(differs=_differ(original, result))
        return result

    def stepped(self, value: Any, step: int) -> Any:
        """Return one more or one less. The value is computed once: ``next(batches).base_offset`` may be it."""
        result = value + step
        self._count(differs=_differ(value, result))
        return result

    def scaled(self, value: Any, factor: int, divisor: int) -> Any:
        """Return a time-out times ``factor`` or divided by ``divisor``; what is not a number stays as it is."""
        result = value
        if isinstance(value, int | float) and not isinstance(value, bool):
            scaled = value * factor
            result = scaled // divisor if isinstance(value, int) else scaled / divisor
        self._count(differs=_differ(value, result))
        return result

    # Conditions

    def suppressed(self, condition: Any) -> bool:
        """A guard that never acts: it is evaluated, its body does not run."""
        self._count(differs=bool(condition))
        return False

    def ignored(self, operand: Any, *, instead: bool) -> bool:
        """An operand of a condition whose value is ignored: it counts as ``instead``."""
        self._count(differs=bool(operand) is not instead)
        return instead

    # Statements: each returns False, so that the statement behind ``if`` is left out

    def left_out(self) -> bool:
        """A statement whose effect cannot be compared is left out."""
        self._count(differs=True)
        return False

    def change_left_out(self, amount: Any) -> bool:
        """A local variable is not changed by this amount."""
        self._count(differs=bool(amount))
        return False

    def attributes_left_out(self, value: Any, *targets: tuple[Any, str]) -> bool:
        """An assignment to attributes is left out; the value was computed."""
        present = [_attribute(owner, name) for owner, name in targets]
        self._count(differs=any(_differ(old, value) for old in present))
        return False

    def item_left_out(self, value: Any, container: Any, key: Any) -> bool:
        """An assignment to an item is left out; the value was computed."""
        self._count(differs=_differ(_item(container, key), value))
        return False

    def clear_left_out(self, container: Any) -> bool:
        """``clear()`` is left out."""
        self._count(differs=not isinstance(container, _CONTAINERS) or len(container) > 0)
        return False

    def removal_left_out(self, container: Any, item: Any) -> bool:
        """``discard(item)``, ``remove(item)`` or ``pop(item, ...)`` is left out."""
        is_set = isinstance(container, set | dict)
        self._count(differs=not is_set or item in container)
        return False

    def addition_left_out(self, container: Any, item: Any) -> bool:
        """``add(item)`` is left out."""
        self._count(differs=not isinstance(container, set) or item not in container)
        return False

    def swapped(self) -> None:
        """Two statements run in the other sequence. Whether they commute is not known: this counts as an effect."""
        self._count(differs=True)


def _holds(names: tuple[str, ...], operands: tuple[Any, ...]) -> bool:
    pairs = zip(names, operands, operands[1:], strict=False)
    return all(_COMPARISONS[name](left, right) for name, left, right in pairs)


def _differ(left: Any, right: Any) -> bool:
    if left is right:
        return False
    if type(left) is not type(right):
        return True
    try:
        return bool(left != right)
    except Exception:  # noqa: BLE001 - values that cannot be compared are not known to be equal
        return True


def _attribute(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except Exception:  # noqa: BLE001 - a property may raise any error
        return _MISSING


def _item(container: Any, key: Any) -> Any:
    """Return the present item. A ``defaultdict`` gets no new one."""
    try:
        return container.get(key, _MISSING) if isinstance(container, dict) else container[key]
    except Exception:  # noqa: BLE001 - the key need not exist
        return _MISSING
