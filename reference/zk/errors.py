"""What can go wrong between a broker and ZooKeeper.

ZooKeeperError
├── ConnectionLossError      the connection broke under the operation: it may or may not have happened
├── SessionExpiredError      the session is over, and all that was its own; the operation may have happened
│   └── ClientClosedError    the client was closed by its owner
├── OperationFailedError     ZooKeeper refused the operation, which therefore did not happen
│   ├── NoNodeError
│   ├── NodeExistsError
│   ├── BadVersionError
│   └── NotEmptyError
├── MultiError               a multi was refused as a whole; names its first failing operation
├── ControllerMovedError     the controller epoch is no longer that of the writer: somebody else is the controller
└── ZnodeFormatError         a znode does not hold what Kafka writes there
"""

from __future__ import annotations


class ZooKeeperError(Exception):
    """Base of everything that ZooKeeper or the way to it does to an operation."""

    @property
    def code(self) -> str:
        """A short name for traces: ``BADVERSION``, ``CONNECTIONLOSS``."""
        return type(self).__name__.removesuffix("Error").upper()


class ConnectionLossError(ZooKeeperError):
    """The outcome is unknown. KafkaZkClient asks again when connected, and looks whether its own write was applied."""


class SessionExpiredError(ZooKeeperError):
    """Never retried in another session: what the caller knew rests on watches and ephemerals that are gone."""


class ClientClosedError(SessionExpiredError):
    """The broker is shutting down."""


class OperationFailedError(ZooKeeperError):
    """Definite. ``name`` is ZooKeeper's, for the errors that have no class of their own."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self._name = name

    @property
    def code(self) -> str:
        return self._name or super().code


class NoNodeError(OperationFailedError):
    """The znode, or the parent of a znode to be created, does not exist."""


class NodeExistsError(OperationFailedError):
    """The znode to be created exists; after a lost reply it may be one's own."""


class BadVersionError(OperationFailedError):
    """A compare-and-set met another version; after a lost reply it may be the one that it wrote itself."""


class NotEmptyError(OperationFailedError):
    """The znode to be deleted has children."""


class MultiError(ZooKeeperError):
    """No operation of the multi had any effect, because number ``index`` failed with ``error``."""

    def __init__(self, index: int, error: OperationFailedError) -> None:
        super().__init__(f"operation {index}: {error}")
        self.index = index
        self.error = error

    @property
    def code(self) -> str:
        return self.error.code


class ControllerMovedError(ZooKeeperError):
    """A fenced write met another controller epoch, or an election was lost. The controller resigns."""


class ZnodeFormatError(ZooKeeperError):
    """Written by something else than Kafka, or by a newer Kafka. Names the path."""
