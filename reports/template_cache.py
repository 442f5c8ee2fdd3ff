"""Compiled templates are kept in the user's cache: to compile those of a report takes a fifth of a second.

Jinja keeps a template with a checksum of its text, so a template that was changed is compiled again. What else decides
how one is compiled is in the name of the directory; filters of constants decide, too, unless Jinja's optimizer is off.
A cache that cannot be read or written costs that time, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache


class _TemplateCache(FileSystemBytecodeCache):
    """A cache whose errors do not end the report."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, EOFError, ValueError, TypeError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def template_cache(options: Mapping[str, bool]) -> FileSystemBytecodeCache | None:
    """Return the cache of this user for templates that are compiled with these options; None if there can be none."""
    name = "-".join(f"{option}-{value}" for option, value in sorted(options.items()))
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        directory = caches / "nemesis" / f"templates-{name}"
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no right to write, or no home
        return None
    return _TemplateCache(str(directory))
