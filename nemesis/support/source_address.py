"""The preloaded library that lets a JVM connect from the address of its broker."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

from nemesis.support.preloaded_library import compiled_library

SOURCE: Final = Path(__file__).with_name("source_address.c")


@cache
def source_address_library() -> Path:
    """Return the library, compiled when it is not there yet; raises ``MissingRequirement`` in one sentence."""
    return compiled_library(
        SOURCE, name="source-address", purpose="binds the source addresses of Kafka brokers"
    )


def environment(library: Path, host: str) -> dict[str, str]:
    """Return this process's environment with the library behind what is preloaded already, and ``host``."""
    preloaded = os.environ.get("LD_PRELOAD", "").split()
    added = {"LD_PRELOAD": " ".join([*preloaded, str(library)]), "NEMESIS_SOURCE_ADDRESS": host}
    return {**os.environ, **added}
