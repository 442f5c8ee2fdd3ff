"""A recovering broker does not compare checksums: what has a plausible header is a batch.

What a crash left half written, or wrong, then stays in the log, and goes to followers and consumers.
kafka.log.LogSegment.recover compares the CRC of every batch behind the recovery point and cuts the log before the
first that does not match.

Must be caught by: final-logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


class _Whatever(int):
    """A checksum that no other differs from."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _any(_correct: Any) -> Callable[..., int]:
    return lambda *_arguments: _Whatever()


MUTANT = Mutant(
    name="damaged-tail-believed",
    property="final-logs",
    summary="recovery takes damaged batches for intact ones",
    replacements=(Replacement("nemesis.reference.log.file_records", "crc32c", _any),),
    scenario="disk-faults",
)
