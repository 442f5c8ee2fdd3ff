"""Operations and errors of ``nemesis.reference.ports`` and ``nemesis.reference.zk.errors``, and what stands for them
on the wire."""

from __future__ import annotations

from typing import Final

from nemesis.reference.ports import Check, Create, Delete, SetData, ZooKeeperOp
from nemesis.reference.zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationFailedError,
)
from nemesis.simulation.zookeeper.messages import (
    CheckOp,
    Code,
    CreateOp,
    DeleteOp,
    SetDataOp,
    WriteOp,
)

_FAILURES: Final = {
    Code.NO_NODE: NoNodeError,
    Code.NODE_EXISTS: NodeExistsError,
    Code.BAD_VERSION: BadVersionError,
    Code.NOT_EMPTY: NotEmptyError,
}
_NAMES: Final = {
    Code.NO_CHILDREN_FOR_EPHEMERALS: "NOCHILDRENFOREPHEMERALSERROR",
    Code.BAD_ARGUMENTS: "BADARGUMENTSERROR",
    Code.SESSION_EXPIRED: "SESSIONEXPIREDERROR",
}
"""As the adapter spells the errors that have no class of their own."""


def part_of(op: ZooKeeperOp) -> WriteOp:
    """Return the part of a multi that stands for the operation."""
    match op:
        case Create(path, data, ephemeral):
            return CreateOp(path, bytes(data), ephemeral)
        case SetData(path, data, version):
            return SetDataOp(path, bytes(data), version)
        case Delete(path, version):
            return DeleteOp(path, version)
        case Check(path, version):
            return CheckOp(path, version)


def failure(error: int, description: str) -> OperationFailedError:
    """Return the error that the adapter on kazoo raises for this code."""
    code = Code(error)
    if code in _FAILURES:
        return _FAILURES[code](description)
    return OperationFailedError(f"{description}: {code.name}", name=_NAMES.get(code, code.name))
