"""Where the vector of operations begins in a map around it, such as ``{"config": {…}, "history": [...]}``.

The entries of the map are read one after the other up to the vector, so that an entry of another one is not taken for
it. Where they cannot be read, the first entry of that name in the first ``SEARCHED`` characters counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from nemesis.history.foreign.edn import EdnError

HEAD_CHARACTERS: Final = 4 * 1024 * 1024
"""What the entries before the vector may take."""
SEARCHED: Final = 4096
_NAMES: Final = ("history", "operations", "ops", "events")
_WRAPPER: Final = re.compile(
    rf"[\s,]*\{{(?:.*?[\s,{{])??(?::(?:{'|'.join(_NAMES)})|\"(?:{'|'.join(_NAMES)})\"\s*:)"
    r"\s*[\[(](?=\s*(?:$|\{|#))",
    re.DOTALL,
)
"""A map around a vector of operations, up to the vector's bracket."""
_OPENS: Final = re.compile(r"[\s,]*\{")
_VECTOR: Final = re.compile(r"[\s,:]*[\[(](?=\s*(?:$|\{|#))")
_COLON: Final = re.compile(r"\s*:")


def vector_start(
    head: str, parse: Callable[[str, int], tuple[Any, int]], *, is_json: bool
) -> int | None:
    """Return where the first operation of a wrapped vector may begin; None without such a map.

    ``head``: the beginning of the file. ``parse`` returns the value at a position and its end, and raises ``EdnError``.
    """
    if not (opening := _OPENS.match(head)):
        return None
    position = opening.end()
    try:
        while True:
            name, position = parse(head, position)
            if (
                isinstance(name, str)
                and name in _NAMES
                and (vector := _VECTOR.match(head, position))
            ):
                return vector.end()
            if is_json and (colon := _COLON.match(head, position)):
                position = colon.end()
            _, position = parse(head, position)
    except EdnError:
        wrapper = _WRAPPER.match(head[:SEARCHED])
        return wrapper.end() if wrapper else None
