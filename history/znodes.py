"""From ZooKeeper's transactions to events: what each change means for a Kafka cluster.

The znodes that Kafka's controllers use (``/controller``, ``/controller_epoch``, ``/brokers/...``)
are parsed into columns; any other path keeps its path and data. The mapping is in
``nemesis.history.vocabulary.zookeeper``.

Data that does not parse leaves the parsed columns unset; it is no problem of the history, because
the system under test may well have written it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from nemesis.history.events import Event, Kind
from nemesis.history.topic_ids import topic_id_of
from nemesis.history.zookeeper_log import (
    CREATES,
    DELETES,
    ERROR_NAMES,
    Operation,
    Transaction,
    TransactionType,
)

PROCESS: Final = "zookeeper"
NO_TIME: Final = -1
STATE_PATH: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
TOPIC_PATH: Final = re.compile(r"/brokers/topics/([^/]+)")
BROKER_PATH: Final = re.compile(r"/brokers/ids/(\d+)")
PARTITION_PATH: Final = re.compile(r"/brokers/topics/([^/]+)/partitions(?:/\d+)?")


class ZnodeEvents:
    """Turns transactions, fed in zxid order, into events. Remembers topic ids and ephemerals."""

    def __init__(self) -> None:
        self._topic_ids: dict[str, str] = {}
        self._ephemerals: dict[str, int] = {}

    def events(self, transactions: Iterable[Transaction]) -> Iterator[Event]:
        """Yield the events of each transaction, ``seq`` counted inside it."""
        for entry in transactions:
            if entry.type == TransactionType.CREATE_SESSION:
                yield self._event(entry, Kind.SESSION_CREATED, 0, timeout_ms=entry.timeout_ms)
            elif entry.type == TransactionType.CLOSE_SESSION:
                yield from self._closed(entry)
            elif any(part.type == TransactionType.ERROR for part in entry.operations):
                yield from self._refused(entry)
            else:
                for seq, operation in enumerate(entry.operations):
                    name = _operation_name(operation.type)
                    if name is not None:
                        yield self._applied(entry, seq, name, operation)

    def _closed(self, entry: Transaction) -> Iterator[Event]:
        reason = "expired" if entry.cxid == 0 else "closed"
        yield self._event(entry, Kind.SESSION_CLOSED, 0, reason=reason)
        own = [path for path, owner in self._ephemerals.items() if owner == entry.session]
        paths = own if entry.closed_paths is None else entry.closed_paths
        for seq, path in enumerate(paths, start=1):
            yield self._applied(entry, seq, "delete", Operation(TransactionType.DELETE, path))

    def _refused(self, entry: Transaction) -> Iterator[Event]:
        codes = [part.error for part in entry.operations if part.type == TransactionType.ERROR]
        # Parts after the failing one carry a filler; the cause is the code that is none.
        cause = next((code for code in codes if _error(code) not in FILLERS), codes[0])
        for seq, part in enumerate(entry.operations):
            error = part.error if part.type == TransactionType.ERROR else cause
            columns = self._meaning(entry, part) if part.path is not None else {}
            yield self._event(
                entry,
                Kind.ZNODE_REFUSED,
                seq,
                error=_error(error),
                zk_op=_operation_name(part.type),
                **_content(part),
                **columns,
            )

    def _applied(self, entry: Transaction, seq: int, name: str, operation: Operation) -> Event:
        path = operation.path or ""
        ephemeral = operation.ephemeral or path in self._ephemerals
        self._remember(entry, operation)
        columns = self._meaning(entry, operation)
        if operation.type in DELETES:
            self._forget(path)
        content = _content(operation) | {"ephemeral": ephemeral}
        return self._event(entry, Kind.ZNODE, seq, zk_op=name, **content, **columns)

    def _remember(self, entry: Transaction, operation: Operation) -> None:
        path = operation.path or ""
        if operation.type in CREATES and operation.ephemeral:
            self._ephemerals[path] = entry.session
        topic = TOPIC_PATH.fullmatch(path)
        data = _json(operation.data)
        if topic is not None and isinstance(data, dict) and isinstance(data.get("topic_id"), str):
            self._topic_ids[topic[1]] = topic_id_of(data["topic_id"])

    def _forget(self, path: str) -> None:
        self._ephemerals.pop(path, None)
        topic = TOPIC_PATH.fullmatch(path)
        if topic is not None:
            self._topic_ids.pop(topic[1], None)

    def _meaning(self, entry: Transaction, operation: Operation) -> dict[str, Any]:
        """The parsed columns of a known path; the topic id is the one in force at this zxid."""
        path = operation.path or ""
        data = _json(operation.data)
        if path == "/controller":
            return {"controller_id": _int(data, "brokerid")}
        if path == "/controller_epoch":
            return {"controller_epoch": data if type(data) is int else None}
        if match := BROKER_PATH.fullmatch(path):
            epoch = entry.zxid if operation.type in CREATES else None
            return {"node": int(match[1]), "broker_epoch": epoch}
        if match := STATE_PATH.fullmatch(path):
            isr = data.get("isr") if isinstance(data, dict) else None
            return {
                "topic": match[1],
                "topic_id": self._topic_ids.get(match[1]),
                "partition": int(match[2]),
                "leader": _int(data, "leader"),
                "leader_epoch": _int(data, "leader_epoch"),
                "controller_epoch": _int(data, "controller_epoch"),
                "isr": isr if _is_int_list(isr) else None,
            }
        if match := TOPIC_PATH.fullmatch(path) or PARTITION_PATH.fullmatch(path):
            return {"topic": match[1], "topic_id": self._topic_ids.get(match[1])}
        return {}

    def _event(self, entry: Transaction, kind: Kind, seq: int, **columns: Any) -> Event:
        return Event(
            time=NO_TIME,
            process=PROCESS,
            kind=kind.value,
            seq=seq,
            zxid=entry.zxid,
            session=entry.session,
            wall_ms=entry.wall_ms,
            **columns,
        )


FILLERS: Final = frozenset({"OK", "RUNTIMEINCONSISTENCY"})


def _error(code: int) -> str:
    return "OK" if code == 0 else ERROR_NAMES.get(code, str(code))


def _operation_name(kind: int) -> str | None:
    if kind in CREATES:
        return "create"
    if kind in DELETES:
        return "delete"
    if kind == TransactionType.SET_DATA:
        return "setData"
    return "check" if kind == TransactionType.CHECK else None


def _content(operation: Operation) -> dict[str, Any]:
    data = operation.data
    return {
        "path": operation.path,
        "data": None if data is None else data.decode("utf-8", "backslashreplace"),
        "zk_version": operation.version,
    }


def _json(data: bytes | None) -> Any:
    try:
        return msgspec.json.decode(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _int(data: Any, name: str) -> int | None:
    value = data.get(name) if isinstance(data, dict) else None
    return value if type(value) is int else None


def _is_int_list(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)
