"""Events of ZooKeeper's transaction log.

Writer: none during the run; ingestion derives the events from the log afterwards (process ``zookeeper``, ``time`` −1).
Their order is (``zxid``, ``seq``). In a KRaft cluster they are derived from the metadata logs of the quorum (process
``quorum``), as the znodes that ZooKeeper would have: ``zxid`` is an offset, ``session`` is 0.
"""

from __future__ import annotations

from nemesis.history.events import Kind, Milliseconds, Word
from nemesis.history.vocabulary.declaring import View, declares


class TransactionView(View, frozen=True, kw_only=True):
    """A part of a transaction."""

    zxid: int
    session: int
    """The session that sent the transaction."""
    wall_ms: Milliseconds


@declares(Kind.ZNODE)
class Znode(TransactionView, frozen=True, kw_only=True):
    """A znode was created, changed, deleted or checked.

    The columns from ``topic`` on are parsed from ``path`` and ``data`` of the znodes that Kafka uses:
    `/controller`, `/controller_epoch`, `/brokers/ids/N`, `/brokers/topics/T` and
    `/brokers/topics/T/partitions/P/state`. They are unset where the data cannot be parsed.
    """

    zk_op: Word | None = None
    path: str | None = None
    data: str | None = None
    zk_version: int | None = None
    ephemeral: bool | None = None
    topic: Word | None = None
    topic_id: Word | None = None
    """The id of the topic at this zxid."""
    partition: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    isr: list[int] | None = None
    controller_epoch: int | None = None
    controller_id: int | None = None
    broker_epoch: int | None = None
    """The zxid, if a broker's znode is created."""


@declares(Kind.ZNODE_REFUSED)
class ZnodeRefused(Znode, frozen=True, kw_only=True):
    """A part of a multi that failed: nothing changed."""

    error: Word = ""
    """The error of ZooKeeper."""


@declares(Kind.SESSION_CREATED)
class SessionCreated(TransactionView, frozen=True, kw_only=True):
    """A session was created."""

    timeout_ms: Milliseconds


@declares(Kind.SESSION_CLOSED)
class SessionClosed(TransactionView, frozen=True, kw_only=True):
    """A session ended. The deletions of its ephemeral znodes follow as ``znode`` events of the same zxid.

    ``reason`` is `expired` if ZooKeeper ended it, `closed` if the client did.
    """

    reason: Word
