"""The znodes as a state machine: the same transactions in the same order leave the same tree.

A leader asks its tree what a write would do (``attempt``: checks each operation against the ones before it, undoes
them all when one is refused) and makes a transaction of the answer; every member applies transactions (``apply``). So
the rules are in the first, the effects in the second, and both share the effects of a single operation.

Source: ``PrepRequestProcessor`` and ``DataTree`` of ZooKeeper 3.9: the number of a sequential znode is the count of
children that its parent ever had; an ephemeral has no children; a check shows in the log the version that it found.

Limits: no ACLs, quotas, containers, time-to-live; paths are not validated beyond what creating and deleting need. Of a
parent's stat only what gives the next sequential number is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nemesis.history.zookeeper_log import CREATES, Operation, Transaction, TransactionType
from nemesis.reference.ports import ZnodeStat
from nemesis.simulation.zookeeper.messages import (
    CheckOp,
    Code,
    CreateOp,
    DeleteOp,
    Outcome,
    SetDataOp,
    WriteOp,
)

SPECIAL_PATHS: Final = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
"""They are there from the beginning and cannot be deleted."""


class Znode(NamedTuple):
    """``created_children`` counts those that are gone, too; ``owner`` 0 is nobody's."""

    data: bytes
    czxid: int
    mzxid: int
    version: int
    created_children: int
    owner: int
    created_ms: int

    @property
    def stat(self) -> ZnodeStat:
        return ZnodeStat(self.czxid, self.mzxid, self.version, self.owner, self.created_ms)


class Refused(Exception):
    """An operation cannot be done. Only ``attempt`` raises and catches it."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class Tree:
    """Znodes and sessions after ``last_zxid``."""

    def __init__(self) -> None:
        self.last_zxid = 0
        self.sessions: dict[int, int] = {}
        """Time-outs in milliseconds, by session."""
        self._nodes: dict[str, Znode] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._ephemerals: dict[int, dict[str, None]] = {}
        for path in SPECIAL_PATHS:
            self._put(path, Znode(b"", 0, 0, 0, 0, 0, 0))

    def copy(self) -> Tree:
        """Return a tree that changes on its own."""
        twin = Tree()
        twin.last_zxid = self.last_zxid
        twin.sessions = dict(self.sessions)
        twin._nodes = dict(self._nodes)
        twin._children = {path: dict(names) for path, names in self._children.items()}
        twin._ephemerals = {owner: dict(paths) for owner, paths in self._ephemerals.items()}
        return twin

    def get(self, path: str) -> Znode | None:
        """Return the znode, None if there is none."""
        return self._nodes.get(path)

    def children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted."""
        return sorted(self._children.get(path, ()))

    def paths(self) -> list[str]:
        """Return every path, sorted."""
        return sorted(self._nodes)

    def ephemerals(self, session: int) -> tuple[str, ...]:
        """Return the paths that end with the session, sorted."""
        return tuple(sorted(self._ephemerals.get(session, ())))

    def attempt(
        self, session: int, ops: Sequence[WriteOp], zxid: int, wall_ms: int
    ) -> tuple[Operation, ...]:
        """Do all of it or nothing; return the parts of the transaction that says so.

        When one operation is refused, the ones before it stand in the log as if they had happened, and the ones after
        it carry a filler.
        """
        parts: list[Operation] = []
        undo: list[tuple[str, Znode | None]] = []
        for op in ops:
            try:
                part = self._part(op)
            except Refused as refused:
                for path, before in reversed(undo):
                    self._put(path, before)
                parts.append(Operation(TransactionType.ERROR, error=refused.code))
                filler = Operation(TransactionType.ERROR, error=Code.RUNTIME_INCONSISTENCY)
                parts.extend([filler] * (len(ops) - len(parts)))
                return tuple(parts)
            self._perform(part, session, zxid, wall_ms, undo)
            parts.append(part)
        self.last_zxid = zxid
        return tuple(parts)

    def apply(self, transaction: Transaction) -> tuple[Outcome, ...]:
        """Apply what was agreed on; return what to answer, one outcome for each operation."""
        self.last_zxid = transaction.zxid
        session = transaction.session
        if transaction.type == TransactionType.CREATE_SESSION:
            self.sessions[session] = transaction.timeout_ms
            return ()
        if transaction.type == TransactionType.CLOSE_SESSION:
            self.sessions.pop(session, None)
            for path in transaction.closed_paths or ():
                self._put(path, None)
            return ()
        parts = transaction.operations
        if any(part.type == TransactionType.ERROR for part in parts):
            return tuple(Outcome(part.error) for part in parts)
        zxid, wall_ms = transaction.zxid, transaction.wall_ms
        return tuple(self._perform(part, session, zxid, wall_ms, []) for part in parts)

    def _part(self, op: WriteOp) -> Operation:
        """What the operation will be in the log; raises ``Refused``."""
        if isinstance(op, CreateOp):
            return self._creation(op)
        node = self._nodes.get(op.path)
        if isinstance(op, DeleteOp) and op.path in SPECIAL_PATHS:
            raise Refused(Code.BAD_ARGUMENTS)
        if node is None:
            raise Refused(Code.NO_NODE)
        if op.version not in (-1, node.version):
            raise Refused(Code.BAD_VERSION)
        match op:
            case SetDataOp(path, data):
                return Operation(TransactionType.SET_DATA, path, data, version=node.version + 1)
            case CheckOp(path):
                return Operation(TransactionType.CHECK, path, version=node.version)
            case DeleteOp(path):
                if self._children.get(path):
                    raise Refused(Code.NOT_EMPTY)
                return Operation(TransactionType.DELETE, path)

    def _creation(self, op: CreateOp) -> Operation:
        parent = self._nodes.get(parent_of(op.path))
        if parent is None:
            raise Refused(Code.NO_NODE)
        path = f"{op.path}{parent.created_children:010d}" if op.sequential else op.path
        if path in self._nodes:
            raise Refused(Code.NODE_EXISTS)
        if parent.owner:
            raise Refused(Code.NO_CHILDREN_FOR_EPHEMERALS)
        return Operation(TransactionType.CREATE2, path, op.data, ephemeral=op.ephemeral, version=0)

    def _perform(
        self,
        part: Operation,
        session: int,
        zxid: int,
        wall_ms: int,
        undo: list[tuple[str, Znode | None]],
    ) -> Outcome:
        path = part.path
        assert path is not None
        before = self._nodes.get(path)
        if part.type in CREATES:
            above = parent_of(path)
            parent = self._nodes[above]
            undo += [(above, parent), (path, None)]
            self._put(above, parent._replace(created_children=parent.created_children + 1))
            owner = session if part.ephemeral else 0
            node = Znode(part.data or b"", zxid, zxid, 0, 0, owner, wall_ms)
            self._put(path, node)
            return Outcome(path=path, stat=node.stat)
        assert before is not None
        undo.append((path, before))
        if part.type == TransactionType.SET_DATA:
            assert part.version is not None
            node = before._replace(data=part.data or b"", mzxid=zxid, version=part.version)
            self._put(path, node)
            return Outcome(stat=node.stat)
        if part.type == TransactionType.DELETE:
            self._put(path, None)
        return Outcome()

    def _put(self, path: str, node: Znode | None) -> None:
        """Make the path hold this znode, or none, and keep the indexes right."""
        before = self._nodes.get(path)
        above, name = parent_of(path), path.rpartition("/")[2]
        if node is None:
            del self._nodes[path]
            del self._children[above][name]
        else:
            self._nodes[path] = node
            if before is None and name:
                self._children.setdefault(above, {})[name] = None
        if before is not None and before.owner:
            del self._ephemerals[before.owner][path]
            if not self._ephemerals[before.owner]:
                del self._ephemerals[before.owner]
        if node is not None and node.owner:
            self._ephemerals.setdefault(node.owner, {})[path] = None


def parent_of(path: str) -> str:
    """Return the parent's path; the root is its own."""
    return path.rpartition("/")[0] or "/"
