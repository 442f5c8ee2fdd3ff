"""The one way in which a replica refuses: a Kafka error code, raised before anything was changed.

``Exception`` ← ``ReplicaError``
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode


class ReplicaError(Exception):
    """A request on a partition is refused with ``code``; nothing has been changed.

    Raised by ``Partition`` and caught by ``ReplicaManager``, which puts the code into the answer. It is not a
    failure of the broker: a fenced epoch or a leader that moved is everyday life.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
