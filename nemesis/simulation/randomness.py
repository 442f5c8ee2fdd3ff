"""Named streams of random numbers, all from one seed.

Each user of chance has a stream of its own, so that one of them drawing more or less changes nothing for the others:
a plan shrunk by one fault leaves the network's latencies as they were.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def stream(seed: int, name: str) -> Random:
    """Return the stream of that name: the same numbers for the same seed, in every interpreter."""
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest, "big"))
