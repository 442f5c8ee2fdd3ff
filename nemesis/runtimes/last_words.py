"""What a process printed last, for the message about its exit.

A JVM ends with a stack trace: the sentence that says why is above its frames. Kafka itself checks most of a broker's
configuration, and its refusal at the start is the user's mistake, not a failure of the harness.
"""

from __future__ import annotations

import re
from typing import Final

from nemesis.interfaces.errors import NodeExited
from nemesis.support.errors import UsageError

_FRAME: Final = re.compile(r"\s+at \S+\(.*\)|\s+\.\.\. \d+ (?:more|common frames omitted)")
_REFUSAL: Final = re.compile(r"org\.apache\.kafka\.common\.config\.ConfigException: (?P<why>.*)")


def last_words(text: str) -> str:
    """Return the last line that is not a frame of a Java stack trace."""
    lines = reversed(text.splitlines())
    sentences = (line.strip() for line in lines if line.strip() and _FRAME.match(line) is None)
    return next(sentences, "it said nothing")


def raise_if_refused(exited: NodeExited) -> None:
    """Raise ``UsageError`` if a broker exited because it does not accept its configuration."""
    if (refusal := _REFUSAL.search(str(exited))) is not None:
        raise UsageError(
            f"broker configuration: {refusal['why']}: choose another value, or leave the property out"
        ) from exited
