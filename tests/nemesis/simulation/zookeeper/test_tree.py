"""The znodes as a state machine: what is attempted is what is applied, and what is refused leaves no trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.zookeeper_log import Transaction, TransactionType
from nemesis.simulation.zookeeper.messages import (
    CheckOp,
    Code,
    CreateOp,
    DeleteOp,
    SetDataOp,
    WriteOp,
)
from nemesis.simulation.zookeeper.tree import Tree

paths = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/b/x"])
versions = st.sampled_from([-1, 0, 1, 2])
contents = st.sampled_from([b"", b"1"])
ops = (
    st.builds(CreateOp, paths, contents, st.booleans(), st.booleans())
    | st.builds(SetDataOp, paths, contents, versions)
    | st.builds(DeleteOp, paths, versions)
    | st.builds(CheckOp, paths, versions)
)
writes = st.lists(st.tuples(st.integers(1, 2), st.lists(ops, min_size=1, max_size=5)), max_size=25)


WALL_MS = 1_700_000_000_000


def transaction(
    zxid: int, session: int, kind: TransactionType, tree: Tree, some: list[WriteOp] | None = None
) -> Transaction:
    closing = kind is TransactionType.CLOSE_SESSION
    return Transaction(
        session=session,
        cxid=1,
        zxid=zxid,
        wall_ms=WALL_MS,
        type=kind,
        checksum=0,
        operations=tree.attempt(session, some, zxid, WALL_MS) if some else (),
        timeout_ms=0 if closing else 1_000,
        closed_paths=tree.ephemerals(session) if closing else None,
    )


def picture(tree: Tree) -> list[tuple[str, object, list[str]]]:
    return [(path, tree.get(path), tree.children(path)) for path in tree.paths()]


@given(writes)
def test_whoever_applies_the_transactions_ends_where_the_leader_is(
    program: list[tuple[int, list[WriteOp]]],
) -> None:
    leader, follower = Tree(), Tree()
    for zxid, (session, some) in enumerate(program, start=1):
        before = picture(leader)
        entry = transaction(zxid, session, TransactionType.MULTI, leader, some)
        refused = any(part.type == TransactionType.ERROR for part in entry.operations)
        if refused:
            assert picture(leader) == before
        outcomes = follower.apply(entry)
        assert len(outcomes) == len(some)
        assert any(outcome.error for outcome in outcomes) == refused
        assert picture(follower) == picture(leader)
        assert [follower.ephemerals(session) for session in (1, 2)] == [
            leader.ephemerals(session) for session in (1, 2)
        ]


@given(writes)
def test_every_parent_is_there_and_knows_its_children(
    program: list[tuple[int, list[WriteOp]]],
) -> None:
    tree = Tree()
    for zxid, (session, some) in enumerate(program, start=1):
        tree.attempt(session, some, zxid, WALL_MS)
    for path in tree.paths():
        above, _, name = path.rpartition("/")
        assert not name or name in tree.children(above or "/")
        for child in tree.children(path):
            assert tree.get(f"{path.rstrip('/')}/{child}") is not None


@given(writes)
def test_a_closed_session_takes_its_ephemerals_along_and_nothing_else(
    program: list[tuple[int, list[WriteOp]]],
) -> None:
    tree = Tree()
    for zxid, (session, some) in enumerate(program, start=1):
        tree.attempt(session, some, zxid, WALL_MS)
    own = tree.ephemerals(1)
    before = tree.paths()
    tree.apply(transaction(100, 1, TransactionType.CLOSE_SESSION, tree))
    assert tree.paths() == [path for path in before if path not in own]
    assert tree.ephemerals(1) == ()


def test_a_copy_changes_on_its_own() -> None:
    tree = Tree()
    tree.attempt(1, [CreateOp("/a", b"")], 1, WALL_MS)
    twin = tree.copy()
    twin.attempt(1, [CreateOp("/a/b", b"", ephemeral=True)], 2, WALL_MS)
    assert tree.children("/a") == []
    assert tree.ephemerals(1) == ()
    assert tree.last_zxid == 1


def test_the_number_of_a_sequential_znode_counts_the_children_that_ever_were() -> None:
    tree = Tree()
    ops: tuple[WriteOp, ...] = (
        CreateOp("/a", b""),
        CreateOp("/a/x", b""),
        DeleteOp("/a/x"),
        CreateOp("/a/n-", b"", sequential=True),
    )
    for zxid, op in enumerate(ops, start=1):
        tree.attempt(1, [op], zxid, WALL_MS)
    assert tree.children("/a") == ["n-0000000001"]


def test_a_refused_multi_names_the_first_failure_and_fills_the_rest() -> None:
    tree = Tree()
    parts = tree.attempt(
        1, [CreateOp("/a", b""), CheckOp("/a", 7), CreateOp("/b", b"")], 1, WALL_MS
    )
    assert [(part.type, part.error) for part in parts] == [
        (TransactionType.CREATE2, 0),
        (TransactionType.ERROR, Code.BAD_VERSION),
        (TransactionType.ERROR, Code.RUNTIME_INCONSISTENCY),
    ]
    assert tree.get("/a") is None
