"""The locale of a JVM: UTF-8, so that it reads and opens any path that this Python can name.

A JVM decodes its arguments, its environment and file names in the encoding of its locale. In the locale C, which
services and slim containers have, that is ASCII: a path with ``ü`` names a file that does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LOCALE: Final = "LC_ALL"
JAVA_LOCALE: Final = {LOCALE: "C.UTF-8"}
"""What the environment of every JVM contains."""


@contextmanager
def java_locale() -> Iterator[None]:
    """Give a process that a library starts in this block, with this process's environment, the locale of a JVM."""
    before = os.environ.get(LOCALE)
    os.environ.update(JAVA_LOCALE)
    try:
        yield
    finally:
        if before is None:
            del os.environ[LOCALE]
        else:
            os.environ[LOCALE] = before
