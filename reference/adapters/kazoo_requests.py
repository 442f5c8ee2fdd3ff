"""What is asked of ZooKeeper through kazoo, and what its answers mean in the terms of the ports.

kazoo can neither create with a stat in return inside a multi nor read several znodes in one request; those are built
here from its own parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from kazoo import exceptions as kazoo_errors
from kazoo.protocol import serialization
from kazoo.security import OPEN_ACL_UNSAFE

from nemesis.reference.ports import Check, Create, Delete, SetData, ZnodeStat, ZooKeeperOp
from nemesis.reference.zk.errors import (
    BadVersionError,
    ConnectionLossError,
    MultiError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationFailedError,
    SessionExpiredError,
    ZooKeeperError,
)

_FAILURES: dict[type[Exception], type[OperationFailedError]] = {
    kazoo_errors.NoNodeError: NoNodeError,
    kazoo_errors.NodeExistsError: NodeExistsError,
    kazoo_errors.BadVersionError: BadVersionError,
    kazoo_errors.NotEmptyError: NotEmptyError,
}
# What ZooKeeper puts in place of the operations around the one that failed.
_ROLLED_BACK = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


class Transaction:
    """A multi whose creates are create2, so that their stats (and with them the zxid) come back."""

    type: ClassVar = serialization.Transaction.type

    def __init__(self, operations: Sequence[Any]) -> None:
        self.operations = operations

    def serialize(self) -> bytes:
        return bytes(serialization.Transaction(self.operations).serialize())

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """One result for each operation: kazoo's ZnodeStat, data with a ZnodeStat, None or an exception."""
        results: list[Any] = []
        header, offset = serialization.MultiHeader.deserialize(data, offset)
        while not header.done:
            result: Any = None
            if header.type == serialization.Create2.type:
                _, offset = serialization.read_string(data, offset)
            if header.type in (serialization.Create2.type, serialization.SetData.type):
                fields = serialization.stat_struct.unpack_from(data, offset)
                result = serialization.ZnodeStat._make(fields)
                offset += serialization.stat_struct.size
            elif header.type == serialization.GetData.type:
                data_read, offset = serialization.read_buffer(data, offset)
                fields = serialization.stat_struct.unpack_from(data, offset)
                result = data_read, serialization.ZnodeStat._make(fields)
                offset += serialization.stat_struct.size
            elif header.type == -1:
                (error,) = serialization.int_struct.unpack_from(data, offset)
                result = kazoo_errors.EXCEPTIONS[error]()
                offset += serialization.int_struct.size
            results.append(result)
            header, offset = serialization.MultiHeader.deserialize(data, offset)
        return results


class MultiRead(Transaction):
    """Reads of several znodes in one request (ZooKeeper 3.6 and newer): looks like a multi, and none undoes another."""

    type: ClassVar = 22


def transaction_of(ops: Sequence[ZooKeeperOp]) -> Transaction:
    """Return the request of a multi."""
    return Transaction([_request(op) for op in ops])


def stats_of(results: Sequence[Any], ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
    """Return what each operation of a multi left; raises ``MultiError``."""
    for index, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, _ROLLED_BACK):
            raise MultiError(index, _failure(result, ops[index].path))
    return [None if result is None else znode_stat(result) for result in results]


def read_of(paths: Sequence[str]) -> MultiRead:
    """Return the request to read several znodes."""
    return MultiRead([serialization.GetData(path, False) for path in paths])


def znodes_of(results: Sequence[Any], paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
    """Return what was read, None where there is no znode."""
    return [_znode(result, path) for result, path in zip(results, paths, strict=True)]


def _request(op: ZooKeeperOp) -> Any:
    match op:
        case Create(path, data, ephemeral):
            return serialization.Create2(path, data, OPEN_ACL_UNSAFE, int(ephemeral))
        case SetData(path, data, version):
            return serialization.SetData(path, data, version)
        case Delete(path, version):
            return serialization.Delete(path, version)
        case Check(path, version):
            return serialization.CheckVersion(path, version)


def znode_stat(stat: Any) -> ZnodeStat:
    """Return kazoo's stat as ours."""
    return ZnodeStat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        ephemeral_owner=stat.ephemeralOwner,
        ctime_ms=stat.ctime,
    )


def _znode(result: Any, path: str) -> tuple[bytes, ZnodeStat] | None:
    if isinstance(result, kazoo_errors.NoNodeError):
        return None
    if isinstance(result, Exception):
        raise _failure(result, path)
    data, stat = result
    return data or b"", znode_stat(stat)


def translated(error: Exception, request: str) -> ZooKeeperError:
    """Return kazoo's error as ours."""
    if isinstance(error, kazoo_errors.ConnectionClosedError):
        # Closing, or kazoo between two connections: in either case it was never sent.
        return ConnectionLossError(request)
    if isinstance(error, kazoo_errors.SessionExpiredError):
        return SessionExpiredError(request)
    if isinstance(error, kazoo_errors.ConnectionLoss):
        return ConnectionLossError(request)
    return _failure(error, request)


def _failure(error: Exception, request: str) -> OperationFailedError:
    for kazoo_error, failure in _FAILURES.items():
        if isinstance(error, kazoo_error):
            return failure(request)
    return OperationFailedError(f"{request}: {error!r}", name=type(error).__name__.upper())
