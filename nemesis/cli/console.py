"""How commands speak: results on stdout, progress and errors on stderr, JSON untouched by a terminal's width."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any, Final

from rich.console import Console
from rich.text import Text

out: Final = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
err: Final = Console(stderr=True)
MIN_COLUMNS: Final = 40
MAX_SENTENCE: Final = 3_500
"""Characters of an error. The longest lists of names need them."""
HANGING: Final = 2
"""Columns by which the second line of a sentence is moved to the right."""


def say(line: Text) -> None:
    """Print a line for people. On a terminal its words are wrapped below its beginning."""
    if not out.is_terminal:
        out.print(line)
        return
    text = line.plain
    indent = len(text) - len(text.lstrip())
    width = max(out.width, MIN_COLUMNS) - indent - HANGING
    for number, part in enumerate(line[indent:].wrap(out, width)):
        out.print(Text(" " * (indent + HANGING * (number > 0))).append(part))


def say_json(data: Any) -> None:
    """Print it for machines."""
    # Not through rich: it would break long lines.
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def say_error(sentence: str) -> None:
    """Print one line on stderr, if there is one. It quotes users: it is neither endless nor does it move a cursor."""
    words = " ".join(sentence.split())
    shown = words if len(words) <= MAX_SENTENCE else f"{words[:MAX_SENTENCE]}…"
    one_line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in shown)
    with suppress(OSError):
        sys.stderr.write(f"nemesis: {one_line}\n")


def note(sentence: str) -> None:
    """Print a line for people on stderr, as it is."""
    # Not through rich: interrupted behind its write, it would print the line again before the next one.
    sys.stderr.write(f"{sentence}\n")
