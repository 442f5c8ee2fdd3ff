"""The names that a source document of the Kafka ledger contains: what looks like an identifier, a znode or a task.

Extracted are words with an inner capital, words with underscores, capitalized words, znodes of Kafka, hyphenated
words and dotted settings. Limit: a plain lower-case word (``startup``, ``poll``) looks like English, so names of that
kind are added to the ledger by hand. A few capitalized English words are extracted, too, and are left out there.
"""

from __future__ import annotations

import re
from typing import Final

_IDENTIFIER: Final = re.compile(r"(?<![A-Za-z0-9_$])[A-Za-z_][A-Za-z0-9_]*")
_INNER_CAPITAL: Final = re.compile(r"[a-z0-9][A-Z]")
_CONSTANT: Final = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
_WITH_UNDERSCORE: Final = re.compile(r"_*[a-z0-9]+(_[a-z0-9]+)+|__[a-z]+(_[a-z]+)*")
_CAPITALIZED: Final = re.compile(r"[A-Z][a-z]+")
_ZNODE: Final = re.compile(
    r"/(?:controller_epoch|controller|brokers|admin|isr_change_notification|config)[a-z_/\[\]]*"
)
_HYPHENATED: Final = re.compile(r"(?<![\w./-])[a-z_]+(?:-[a-z]+)+(?:-\d+)?(?![\w./])")
_DOTTED: Final = re.compile(r"(?<![\w./])[a-z]+(?:\.[a-z]+){2,}(?![\w(])")


def names_in(text: str) -> set[str]:
    """Return the names that the text of a document contains."""
    text = text.replace("\\_", "_")
    words = {match.group() for match in _IDENTIFIER.finditer(text)}
    names = {word for word in words if _is_name(word)}
    for pattern in (_ZNODE, _HYPHENATED, _DOTTED):
        names.update(match.group().rstrip("/") for match in pattern.finditer(text))
    return names


def _is_name(word: str) -> bool:
    return (
        _INNER_CAPITAL.search(word) is not None
        or _CONSTANT.fullmatch(word) is not None
        or _WITH_UNDERSCORE.fullmatch(word) is not None
        or _CAPITALIZED.fullmatch(word) is not None
    )
