"""How commands speak: results on stdout, progress and errors on stderr, JSON untouched by a terminal's width."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any, Final

from rich.console import Console

out: Final = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
err: Final = Console(stderr=True)


def say_json(data: Any) -> None:
    """Print it for machines."""
    # Not through rich: it would break long lines.
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def say_error(sentence: str) -> None:
    """Print one line on stderr, if there is one."""
    one_line = " ".join(sentence.split())
    with suppress(OSError):
        sys.stderr.write(f"nemesis: {one_line}\n")


def note(sentence: str) -> None:
    """Print a line for people on stderr, as it is."""
    # Not through rich: interrupted behind its write, it would print the line again before the next one.
    sys.stderr.write(f"{sentence}\n")
