"""Events as formats 2 and 3 stored them, read as today's; those of formats 4 to 13 only lack columns.

Until format 3 some columns meant different things in different kinds of events: ``offset`` was a duration in
``convergence``, ``detail`` held counts, states, settings and reasons. Format 4 gave each meaning a column of its own.
The names of kinds and functions, and the order of rows, are the same in all of these formats.

A table of older rows is complete again when its columns are moved; ``_MOVES`` lists every move. A text that cannot be
parsed stays where it was, and the new columns stay unset: checks treat them as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nemesis.history.events import IDEMPOTENT, Kind
from nemesis.history.schema import SCHEMA

READABLE: Final = frozenset({2, 3})
"""Older versions whose columns are moved when they are read. Format 2 had no column ``key``, which is unset then."""
UNCHANGED: Final = frozenset({4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
"""Older versions whose columns mean what they mean today. They lack those of ``_NEW_IN_13``, before format 11 those
of ``_NEW_IN_11``, and so on. In format 11 no query of an offset states a leader epoch; up to format 12 there is
neither ``follower-epoch`` nor ``log-closed``. Until format 6 only logs, segments and batches were read from the files
of brokers. Format 4 had neither ``control-request-answered`` nor ``replica-offsets`` nor ``broker-property`` nor
``log-dir-failed`` nor ``stored-segment``; ``metadata-updated`` had no ``live``, ``log-loaded`` no ``log_dir``,
answers to polls no ``log_start_offset`` and ``last_offset``, and completions of sends no ``count``."""
LAST_WITHOUT_WAITS: Final = 13
"""The last version in which operations without an answer do not say how long their client waited."""
LAST_WITHOUT_TOMBSTONES: Final = 12
"""The last version that has nothing of records without a value in compacted logs."""
LAST_WITHOUT_STATED_EPOCHS: Final = 11
"""The last version in which no query of an offset states a leader epoch."""
LAST_WITHOUT_FETCHES: Final = 10
"""The last version that has nothing of what clients ask in fetches."""
LAST_WITHOUT_TRANSACTIONS: Final = 9
"""The last version that has nothing of transactions of our own runs."""
LAST_WITHOUT_INSTANCES: Final = 8
"""The last version that has nothing of static members, assignors and subscriptions."""
LAST_WITHOUT_GROUPS: Final = 7
"""The last version that has nothing of consumer groups."""
LAST_WITHOUT_COMPANIONS: Final = 6
"""The last version that has nothing of what stands beside the batches of stored logs."""
LAST: Final = 3
"""The last version whose raw files do not say which they are."""

_NEW_IN_4: Final = frozenset(
    {
        *("micro_operations", "delivery", "producer_id", "producer_epoch", "sequence"),
        *("partition_count", "count", "strategy", "step", "from_state", "to_state", "replica"),
        *("change", "reason", "cleaner_offset", "bytes_before", "bytes_after", "log_dir", "alive"),
        *("unclean_leader_election_enable", "min_insync_replicas", "session_state", "timeout_ms"),
        *("phase", "check", "source", "duration_ms", "setting", "original", "part_of"),
    }
)
_NEW_IN_6: Final = frozenset({"high_watermark_before", "producers_end"})
_NEW_IN_7: Final = frozenset(
    {
        *("recovery_point", "superseded_offset", "segment_offset", "position", "max_timestamp"),
    }
)
_NEW_IN_8: Final = frozenset({"group", "member", "generation"})
_NEW_IN_9: Final = frozenset({"instance", "assignor", "subscribed"})
_NEW_IN_10: Final = frozenset(
    {
        *("coordinator_epoch", "outcome", "first_offset"),
        *("transactional_id", "transaction", "isolation", "last_stable_offset", "aborted"),
        "derived_from",
    }
)
_NEW_IN_11: Final = frozenset(
    {"fetch_session", "fetch_epoch", "asked", "forgotten", "answered", "failed"}
)
_NEW_IN_13: Final = frozenset({"tombstone", "delete_horizon_ms"})


def _columns_without(schema: pa.Schema, names: frozenset[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


SCHEMA_12: Final = _columns_without(SCHEMA, _NEW_IN_13)
"""The columns of formats 11 and 12."""
SCHEMA_10: Final = _columns_without(SCHEMA_12, _NEW_IN_11)
"""The columns of format 10."""
SCHEMA_9: Final = _columns_without(SCHEMA_10, _NEW_IN_10)
"""The columns of format 9."""
SCHEMA_8: Final = _columns_without(SCHEMA_9, _NEW_IN_9)
"""The columns of format 8."""
SCHEMA_7: Final = _columns_without(SCHEMA_8, _NEW_IN_8)
"""The columns of format 7."""
SCHEMA_6: Final = _columns_without(SCHEMA_7, _NEW_IN_7)
"""The columns of format 6."""
UNCHANGED_SCHEMA: Final = _columns_without(SCHEMA_6, _NEW_IN_6)
"""The columns of formats 4 and 5."""
OLDER_SCHEMA: Final = _columns_without(UNCHANGED_SCHEMA, _NEW_IN_4)
"""The columns of format 3."""


def unchanged_schema(version: int) -> pa.Schema:
    """Return the columns of one of ``UNCHANGED``."""
    newer = {
        LAST_WITHOUT_WAITS: SCHEMA,
        LAST_WITHOUT_TOMBSTONES: SCHEMA_12,
        LAST_WITHOUT_STATED_EPOCHS: SCHEMA_12,
        LAST_WITHOUT_FETCHES: SCHEMA_10,
        LAST_WITHOUT_TRANSACTIONS: SCHEMA_9,
        LAST_WITHOUT_INSTANCES: SCHEMA_8,
        LAST_WITHOUT_GROUPS: SCHEMA_7,
        LAST_WITHOUT_COMPANIONS: SCHEMA_6,
    }
    return newer.get(version, UNCHANGED_SCHEMA)


_OPERATIONS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
_BATCH: Final = re.compile(r"producer (-?\d+), epoch (-?\d+), sequence (-?\d+)")
_TRANSITION: Final = re.compile(r"(?:partition|replica) (\w+)->(\w+)")
_CLEANED: Final = re.compile(r"(\d+) -> (\d+) bytes")
_PART: Final = re.compile(r"[^ {]+#\d+")
_ZK_OPS: Final = {"SetData": "setData", "Create": "create", "Delete": "delete", "Check": "check"}

Parsed = Sequence[Any] | None
"""The values of the new columns; None if the old value cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one column of some events has become."""

    kinds: tuple[Kind, ...]
    source: str
    targets: tuple[str, ...]
    parse: Callable[[Any], Parsed] | None = None
    """Unset: the value is the same."""
    functions: tuple[str, ...] = ()
    """Only events of these functions; empty: of all."""
    has_topic: bool | None = None
    """Only events with a topic, or only events without; None: both."""


def _number(text: Any) -> Parsed:
    return (int(text),) if text.isdecimal() else None


def _numbers(pattern: re.Pattern[str]) -> Callable[[Any], Parsed]:
    def parse(text: Any) -> Parsed:
        parts = pattern.fullmatch(text)
        return parts and [int(group) for group in parts.groups()]

    return parse


def _operation_detail(text: Any) -> Parsed:
    if parts := _BATCH.fullmatch(text):
        return (*map(int, parts.groups()), None, None)
    if text.startswith("{:value "):
        return (None, None, None, text, None)
    return (None, None, None, None, text) if _PART.fullmatch(text) else None


def _settings(text: Any) -> Parsed:
    try:
        settings = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if not isinstance(settings, dict):
        return None
    unclean = settings.get("unclean.leader.election.enable")
    least = settings.get("min.insync.replicas")
    return unclean if type(unclean) is bool else None, least if type(least) is int else None


def _states(text: Any) -> Parsed:
    parts = _TRANSITION.fullmatch(text)
    return parts and parts.groups()


_MOVES: Final = (
    Move((Kind.OK,), "value", ("producer_id",), functions=("init-producer-id",)),
    Move(
        _OPERATIONS,
        "value",
        ("partition_count",),
        functions=("create-topic", "create-partitions"),
    ),
    Move(_OPERATIONS, "values", ("micro_operations",), functions=("txn",)),
    Move(
        _OPERATIONS,
        "role",
        ("delivery",),
        lambda role: (role,) if role == IDEMPOTENT else None,
        functions=("send",),
    ),
    Move(
        _OPERATIONS,
        "detail",
        ("producer_id", "producer_epoch", "sequence", "original", "part_of"),
        _operation_detail,
    ),
    Move((Kind.OK,), "offset", ("log_start_offset",), functions=("log-start",)),
    Move(_OPERATIONS, "path", ("log_dir",), functions=("alter-log-dir",)),
    Move(
        (Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED),
        "detail",
        ("unclean_leader_election_enable", "min_insync_replicas"),
        _settings,
    ),
    Move((Kind.SESSION_STATE,), "detail", ("session_state",)),
    Move(
        (Kind.SESSION_CLOSED, Kind.CONTROLLER_RESIGNED, Kind.LOG_START_OFFSET),
        "detail",
        ("reason",),
    ),
    Move((Kind.SESSION_CREATED,), "detail", ("timeout_ms",), _number),
    Move((Kind.LEADER_ELECTED,), "detail", ("strategy",)),
    Move((Kind.ELECTION_ASKED, Kind.REPLICA_STOPPED), "detail", ("step",)),
    Move((Kind.ZNODE_ATTEMPT,), "detail", ("zk_op",), lambda text: (_ZK_OPS.get(text, text),)),
    Move((Kind.TRANSITION,), "detail", ("from_state", "to_state"), _states),
    Move((Kind.TRANSITION,), "peer", ("replica",)),
    Move((Kind.LOG_DIR_CHANGED,), "path", ("log_dir",)),
    Move((Kind.LOG_CLEANED,), "detail", ("bytes_before", "bytes_after"), _numbers(_CLEANED)),
    Move((Kind.ISR_CHANGE_PROPOSED,), "detail", ("change",)),
    Move((Kind.METADATA_UPDATED,), "detail", ("count",), _number),
    Move((Kind.PHASE,), "detail", ("phase",)),
    Move((Kind.CONVERGENCE,), "detail", ("check",)),
    Move((Kind.CONVERGENCE, Kind.HARNESS_LAG), "offset", ("duration_ms",)),
    Move((Kind.END_STATE,), "detail", ("source",)),
    Move((Kind.END_STATE,), "offset", ("count",)),
    Move((Kind.STORED_LOG,), "detail", ("alive",), lambda text: (text == "alive",)),
    Move((Kind.STORED_LOG,), "offset", ("cleaner_offset",), has_topic=True),
    Move((Kind.STORED_LOG,), "offset", ("count",), has_topic=False),
)


def upgraded(rows: pa.Table) -> pa.Table:
    """Return rows of an older format as rows of ``SCHEMA``, in their order; columns that they lack are unset."""
    columns = {
        field.name: _plain(rows.column(field.name))
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, _plain_type(field.type))
        for field in SCHEMA
    }
    for move in _MOVES:
        _apply(move, columns)
    return pa.Table.from_arrays(
        [
            column.dictionary_encode() if pa.types.is_dictionary(field.type) else column
            for field, column in zip(SCHEMA, columns.values(), strict=True)
        ],
        schema=SCHEMA,
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, its words not in a dictionary."""
    array = column.cast(_plain_type(column.type)).combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _apply(move: Move, columns: dict[str, pa.Array]) -> None:
    source = columns[move.source]
    if source.null_count == len(source):
        return
    positions = np.flatnonzero(_are_meant(move, columns))
    if move.parse is None:
        parts = [source.take(pa.array(positions))]
    else:
        parsed = [move.parse(value) for value in source.take(pa.array(positions)).to_pylist()]
        is_parsed = np.array([values is not None for values in parsed], dtype=np.bool_)
        positions = positions[is_parsed]
        values = list(zip(*(values for values in parsed if values is not None), strict=True))
        types = [_plain_type(SCHEMA.field(name).type) for name in move.targets]
        parts = [pa.array(column, kind) for column, kind in zip(values, types, strict=False)]
    if not len(positions):
        return
    for name, values in zip(move.targets, parts, strict=True):
        columns[name] = _merged(columns[name], positions, values)
    columns[move.source] = _without(source, positions)


def _are_meant(move: Move, columns: dict[str, pa.Array]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row, whether it is of the kind and function and has a value to be moved."""
    are = pc.and_(
        pc.is_valid(columns[move.source]), pc.is_in(columns["kind"], pa.array([*move.kinds]))
    )
    if move.functions:
        are = pc.and_(are, pc.is_in(columns["f"], pa.array([*move.functions])))
    if move.has_topic is not None:
        has_topic = pc.is_valid(columns["topic"])
        are = pc.and_(are, has_topic if move.has_topic else pc.invert(has_topic))
    return np.asarray(are.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _merged(column: pa.Array, positions: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """A column with these values at these positions, where it is unset."""
    index = np.full(len(column), -1, dtype=np.int64)
    index[positions] = np.arange(len(positions))
    new = values.take(pa.array(index, mask=index < 0))
    return new if column.null_count == len(column) else pc.coalesce(column, new)


def _without(column: pa.Array, positions: np.ndarray[Any, Any]) -> pa.Array:
    """A column that is unset at these positions."""
    is_kept = np.ones(len(column), dtype=np.bool_)
    is_kept[positions] = False
    return column.take(pa.array(np.arange(len(column)), mask=~is_kept))
