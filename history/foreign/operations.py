"""One line of a history from elsewhere: what some process began, or how that ended.

Jepsen's shape, in EDN or as JSON: a map of ``:type`` (``:invoke``, ``:ok``, ``:fail``, ``:info``), ``:process`` (a
number; anything but ``nemesis`` is a client), ``:f``, ``:value``, and where known ``:time`` (ns), ``:index`` (its place
in the history), ``:error``. Other entries are kept aside. A time that is none is as good as missing if there is an
index; else the place of the operation is not known, and the line cannot be used.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec

from nemesis.history.foreign.edn import Keyword, Tagged, keyword_or_text, same

TYPES: Final = ("invoke", "ok", "fail", "info")
INVOKE, OK, FAIL, INFO = TYPES
NEMESIS: Final = "nemesis"
NO_PROCESS: Final = ""
"""The process of an operation that states none."""
SEEKS: Final = "seek-to-beginning?"
"""The entry of an ``assign`` that makes its consumer read from the beginning; nil if the file cannot state it."""
MAX_TIME: Final = 2**62
_OWN_ENTRIES: Final = frozenset({"type", "process", "f", "value", "time", "index", "error"})


class NotAnOperation(ValueError):
    """A form is no operation; the message says what it lacks."""


class Operation(msgspec.Struct, kw_only=True, gc=False):
    line: int
    """Where it stands in the file, from 1; that of its first line if it has several."""
    type: str
    process: int | str
    f: str
    value: Any = None
    time: int | None = None
    index: int | None = None
    error: Any = None
    other: dict[str, Any] | None = None

    @property
    def is_invoke(self) -> bool:
        return self.type == INVOKE

    @property
    def is_of_client(self) -> bool:
        return self.process != NEMESIS

    def says_the_same(self, other: Operation) -> bool:
        """Whether two lines tell of one thing: the same line written twice."""
        return (
            (self.type, self.process, self.f) == (other.type, other.process, other.f)
            and same(self.value, other.value)
            and (self.time, self.index) == (other.time, other.index)
        )


def operation_of(form: Any, line: int) -> Operation:
    """Return the operation that a form says; raises ``NotAnOperation``."""
    if isinstance(form, Tagged):
        form = form.value
    if not isinstance(form, dict):
        raise NotAnOperation("it is no map")
    kind = form.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise NotAnOperation("its type is none of invoke, ok, fail, info")
    process = form.get("process")
    if process is None:
        process = NO_PROCESS
    if isinstance(process, bool) or not isinstance(process, int | str):
        raise NotAnOperation("it names no process")
    f = form.get("f")
    if f is None:
        f = ""
    if not isinstance(f, str):
        raise NotAnOperation("its f is no word")
    time, index = _number(form.get("time")), _number(form.get("index"))
    if time is None and index is None and form.get("time") is not None:
        raise NotAnOperation("its time is no whole number of nanoseconds from 0 on")
    other = {str(key): value for key, value in form.items() if key not in _OWN_ENTRIES}
    return Operation(
        line=line,
        type=str(kind),
        process=process,
        f=str(f),
        value=form.get("value"),
        time=time,
        index=index,
        error=form.get("error"),
        other=other or None,
    )


def form_of(operation: Operation) -> dict[Any, Any]:
    """Return the map that says the operation, as Jepsen writes it."""
    process = operation.process
    form: dict[Any, Any] = {
        Keyword("type"): Keyword(operation.type),
        Keyword("process"): Keyword(process) if process == NEMESIS else process,
        Keyword("f"): keyword_or_text(operation.f),
        Keyword("value"): operation.value,
    }
    if operation.time is not None:
        form[Keyword("time")] = operation.time
    if operation.index is not None:
        form[Keyword("index")] = operation.index
    if operation.error is not None:
        form[Keyword("error")] = operation.error
    form |= {keyword_or_text(key): value for key, value in (operation.other or {}).items()}
    return form


def _number(value: Any) -> int | None:
    """A time or an index, None for what is none."""
    is_fraction = isinstance(value, float | Decimal)
    if is_fraction and 0 <= value < MAX_TIME and value == int(value):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < MAX_TIME else None
