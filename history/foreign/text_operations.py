"""Operations as Jepsen prints them, in ``history.txt`` and in its log: process, type, function and value, by columns.

    0	:invoke	:write	3
    INFO [2024-01-01 12:00:00,000] jepsen worker 0 - jepsen.util 0	:ok	:write	3

What stands before the process is left out; an error may follow the value. The lines have no times: their order counts.
They have no other entries either. So a consumer that is assigned keys may have gone back to their beginning. The last
line of a file may be cut off in its value, and still be whole as a line, unless its value cannot go on.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nemesis.history.foreign.edn import EdnError, Keyword, parse
from nemesis.history.foreign.operations import SEEKS

ASSIGN: Final = "assign"
_CLOSED: Final = re.compile(r".*(?:[\])}\"]|\s(?:nil|true|false))\s*", re.DOTALL)
"""A line that no further character of its value may follow."""
_LINE: Final = re.compile(
    r"(?:.*?[\s])??(?P<process>\d+|:nemesis)\s+:(?P<type>invoke|ok|fail|info)\s+:(?P<f>[^\s\]}]+)(?:\s+(?P<rest>.*))?\s*"
)


def is_text_history(beginning: str) -> bool:
    """Whether a file that begins like this has such lines, and no maps."""
    lines = [line for line in beginning.splitlines() if line.strip()]
    return not beginning.lstrip("\ufeff \t\r\n,").startswith(("{", "[", "(", "#", ";")) and any(
        _LINE.fullmatch(line) for line in lines[:50]
    )


def text_operation(line: str) -> dict[str, Any]:
    """Return the map that a line means; raises ``EdnError``."""
    match = _LINE.fullmatch(line.rstrip("\r\n"))
    if match is None:
        raise EdnError("it is not a process, a type, a function and a value")
    process = match["process"]
    form: dict[str, Any] = {
        "process": int(process) if process.isdecimal() else process[1:],
        "type": Keyword(match["type"]),
        "f": Keyword(match["f"]),
    }
    if match["f"] == ASSIGN:
        form[SEEKS] = None
    rest = match["rest"] or ""
    if rest.strip():
        form["value"], end = parse(rest)
        if error := rest[end:].strip():
            form["error"] = error
    return form


def may_be_cut_off(line: str) -> bool:
    """Whether the last line of a file may lack the end of its value, such as digits of a number."""
    return not line.endswith("\n") and _CLOSED.fullmatch(line) is None
