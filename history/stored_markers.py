"""The markers of transactions in the control batches of a stored log.

The record of a control batch has the key (version, type): 0 ends a transaction with an abort, 1 with a commit. Its
value is (version, epoch of the transaction coordinator). A cleaner may leave a control batch without its record. Other
types of control records are not markers: a KRaft quorum writes them into its metadata log.

Written after Kafka's formats, and apart from the system under test.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final, NamedTuple

from nemesis.history.stored_companions import varint

_COUNT: Final = Struct(">i")
_COUNT_AT: Final = 57
_RECORDS_AT: Final = 61
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_ABORT, _COMMIT = 0, 1


class StoredMarker(NamedTuple):
    """How a transaction ends, and the epoch of the coordinator that decided it."""

    is_commit: bool
    coordinator_epoch: int


def marker_of(batch: bytes) -> StoredMarker | None:
    """Return the marker of a control batch, which is whole; None if it holds none."""
    (count,) = _COUNT.unpack_from(batch, _COUNT_AT)
    if count < 1:
        return None
    try:
        _, index = varint(batch, _RECORDS_AT)
        _, index = varint(batch, index + 1)  # behind one byte of attributes: the time
        _, index = varint(batch, index)
        _, index = varint(batch, index)
        _, control_type = _KEY.unpack_from(batch, index)
        if control_type not in (_ABORT, _COMMIT):
            return None
        _, index = varint(batch, index + _KEY.size)
        _, coordinator_epoch = _VALUE.unpack_from(batch, index)
    except (IndexError, StructError):
        return None
    return StoredMarker(control_type == _COMMIT, coordinator_epoch)
