"""Operations as Jepsen prints them, in ``history.txt`` and in its log: process, type, function and value, by columns.

    0	:invoke	:write	3
    INFO [2024-01-01 12:00:00,000] jepsen worker 0 - jepsen.util 0	:ok	:write	3

What stands before the process is left out; an error may follow the value. The lines have no times: their order counts.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nemesis.history.foreign.edn import EdnError, Keyword, parse

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
    rest = match["rest"] or ""
    if rest.strip():
        form["value"], end = parse(rest)
        if error := rest[end:].strip():
            form["error"] = error
    return form
