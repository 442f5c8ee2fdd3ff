"""The values of a workload's records: a unique number each, padded to the size that the scenario asks for."""

from __future__ import annotations

from nemesis.workloads.kafka.errors import ForeignRecord


def payload_of(value: int, size: int) -> bytes:
    """Return the value of a record, padded to ``size`` bytes."""
    return str(value).encode().ljust(size, b".")


def value_of(payload: bytes | None) -> int:
    """Return the number in a record's value; raises ``ForeignRecord`` for a record that no producer here wrote."""
    digits = (payload or b"").rstrip(b".")
    if not digits.isdigit():
        raise ForeignRecord
    return int(digits)
