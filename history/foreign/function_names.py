"""What a function that a workload does not have may do to an object, by the words of its name.

Without the operations of a function that changes objects, a history lacks some. A function with neither kind of word
may do either.
"""

from __future__ import annotations

import re
from typing import Final

_CHANGES: Final = re.compile(
    r"write|cas|acquire|release|add|enqueue|dequeue|drain|send|txn|transfer|put|inc|insert|append|clear|create|dec"
    r"|decr|decrby|decrement|del|delete|deposit|drop|exchange|expire|incr|incrby|increment|lock|lpush|merge|modify"
    r"|move|offer|pop|push|remove|rename|replace|reset|rm|rpush|save|set|store|swap|take|truncate|unlock|update"
    r"|upsert|withdraw|rewind|seek|unassign|unsubscribe|credit|debit|mint|pay|purge|requeue|rollback"
)
"""Words of functions that change an object."""
_READS: Final = re.compile(
    r"await|check|close|connect|contains|count|debug|describe|disconnect|exists|fetch|find|get|has|info|is|len|length"
    r"|list|look|lookup|noop|nop|offset|offsets|peek|ping|print|query|read|reconnect|refresh|scan|select|show|size"
    r"|sleep|start|stats|status|stop|verify|wait"
)
"""Words of functions that read, unless a word above is in the name, too."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def changes(f: str) -> bool:
    """Return whether a word of the name states that the function changes an object."""
    return any(_CHANGES.fullmatch(word) for word in _words(f))


def reads(f: str) -> bool:
    """Return whether a word of the name states that the function only reads, and no word that it changes an object."""
    return not changes(f) and any(_READS.fullmatch(word) for word in _words(f))


def _words(f: str) -> list[str]:
    """The words of ``read-all`` and ``readAll``, in small letters."""
    return [word.lower() for word in _WORD.findall(f)]
