"""Which partition of a coordinator's topic has a key, a group id or a transactional id: by Java's hash code.

Source: java.lang.String.hashCode, org.apache.kafka.common.utils.Utils.abs.
"""

from __future__ import annotations

from struct import iter_unpack

_INT_VALUES = 1 << 32
_MIN_INT = -(1 << 31)


def string_hash_code(text: str) -> int:
    """Java's ``String.hashCode``: a polynomial of the UTF-16 code units, as a signed 32-bit number."""
    value = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        value = (31 * value + unit) % _INT_VALUES
    return value - _INT_VALUES if value > -_MIN_INT - 1 else value


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of a key. The smallest hash code has no absolute value and counts as 0."""
    code = string_hash_code(key)
    return (0 if code == _MIN_INT else abs(code)) % partition_count
