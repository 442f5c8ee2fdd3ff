"""The events of a plain history, as an Arrow file among the raw files of its run.

The rows are those that ``importing.write_events`` writes as JSON lines for the same file. They are in the order of
time, so ``sorted_pieces`` uses the file as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nemesis.history.events import Kind
from nemesis.history.foreign.importing import Imported
from nemesis.history.foreign.names import word_of
from nemesis.history.foreign.operations import NEMESIS
from nemesis.history.foreign.origins import FILE
from nemesis.history.foreign.plain import columns as layout
from nemesis.history.foreign.plain.columns import Positions
from nemesis.history.foreign.plain.histories import PlainHistory
from nemesis.history.foreign.vocabulary import aside
from nemesis.history.schema import SCHEMA

BATCH_ROWS: Final = 128 * 1024
_KINDS: Final = (Kind.INVOKE.value, Kind.OK.value, Kind.FAIL.value, Kind.INFO.value)
_FUNCTIONS: Final = ("read", "write", "cas", "txn")


def write_plain(history: PlainHistory, directory: Path, raw: Path) -> Imported:
    """Write the events into ``raw``, and the lines of the events into ``directory``. Raises OSError."""
    words = _words_of(history)
    schema = _schema(history, words)
    with (
        ThreadPoolExecutor(1) as other_thread,
        pa.OSFile(str(raw), "wb") as file,
        pa.ipc.new_file(file, schema) as writer,
    ):
        origins = other_thread.submit(_write_origins, history, directory)
        # A batch at a time: its arrays take the memory of those of the batch before.
        for start in range(0, len(history.line), BATCH_ROWS):
            part = slice(start, min(start + BATCH_ROWS, len(history.line)))
            writer.write_batch(_batch(history, words, schema, part))
        origins.result()
    return Imported(
        operations=len(history.line),
        problems=history.problems.sentences(),
        notes=history.problems.notes(),
        has_real_time=True,
        is_timed=history.is_timed,
        may_lack_operations=False,
        is_cut_off=False,
        may_hide_changes=False,
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the events: each different one once, as dictionaries of Arrow, and where the rare ones stand."""

    functions: list[str | None]
    processes: list[str]
    errors: list[str]
    error_at: dict[int, int]
    """The position in ``errors`` of what a line states."""
    originals: dict[int, str | None]


def _words_of(history: PlainHistory) -> _Words:
    others = history.others
    errors = {**history.errors}
    errors |= {line: other.error for line, other in others.items() if other.error is not None}
    texts = {line: word_of(error) for line, error in errors.items()}
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts.values()))}
    return _Words(
        functions=list(dict.fromkeys([*_FUNCTIONS, *(other.f for other in others.values())])),
        processes=[*map(str, history.process_names.tolist()), NEMESIS],
        errors=list(codes),
        error_at={line: codes[text] for line, text in texts.items()},
        originals={line: aside(other)["original"] for line, other in others.items()},
    )


def _schema(history: PlainHistory, words: _Words) -> pa.Schema:
    """The columns that any event sets."""
    f, shape, type_ = history.lines.f, history.lines.shape, history.lines.type
    names = {"time", "seq", "op", "kind", "f", "process"}
    names |= {"error"} if words.errors else set()
    names |= {"original"} if words.originals else set()
    is_client = history.process >= 0
    if (f[is_client] == layout.TXN).any():
        names |= {"micro_operations"}
    else:
        is_cas = f == layout.CAS
        is_keyed = _has_key(is_cas, shape) & (type_ == layout.INVOKE) & is_client
        names |= {"value"}
        names |= {"key"} if is_keyed.any() else set()
        names |= {"values"} if (is_cas & is_client).any() else set()
    return pa.schema([field for field in SCHEMA if field.name in names])


def _batch(history: PlainHistory, words: _Words, schema: pa.Schema, part: slice) -> pa.RecordBatch:
    """The events of a part of the lines, in the order of time."""
    source = history.source[part]
    is_client = source >= 0
    columns: dict[str, Any] = {
        "time": history.time[part],
        "seq": history.seq[part],
        "op": pa.array(history.op[part], mask=~is_client),
    }
    columns |= _coded_columns(history, words, part)
    if "micro_operations" in schema.names:
        columns["micro_operations"] = _micro_operations(history, source)
    else:
        columns |= _values(history, source, schema)
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _coded_columns(history: PlainHistory, words: _Words, part: slice) -> dict[str, Any]:
    """Kinds, functions, processes, errors and the originals of operations of ``nemesis``."""
    process = history.process[part]
    kind, f = (column[part].astype(np.int32) for column in (history.lines.type, history.lines.f))
    positions = range(part.start, part.stop)
    codes = {word: code for code, word in enumerate(words.functions)}
    for line in words.originals.keys() & set(positions) if words.originals else ():
        kind[line - part.start] = layout.INFO
        f[line - part.start] = codes[history.others[line].f]
    columns: dict[str, Any] = {
        "kind": _coded(kind, _KINDS),
        "f": _coded(f, words.functions),
        "process": _coded(
            np.where(process < 0, len(words.processes) - 1, process), words.processes
        ),
    }
    if words.errors:
        columns["error"] = _coded(
            np.fromiter((words.error_at.get(line, -1) for line in positions), np.int64),
            words.errors,
        )
    if words.originals:
        columns["original"] = pa.array(map(words.originals.get, positions), pa.string())
    return columns


def _coded(codes: Any, words: Sequence[str | None]) -> pa.DictionaryArray:
    """Words by their positions in a list, −1 for a row without a word."""
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(words, pa.string())
    )


def _micro_operations(history: PlainHistory, source: Positions) -> pa.Array:
    from nemesis.history.foreign.plain.pairing import gather

    lines, states = history.lines, source >= 0
    lengths = lines.b[source[states]] - lines.a[source[states]]
    out = np.empty(int(lengths.sum()), dtype=np.int64)
    offsets = np.zeros(len(source) + 1, dtype=np.int64)
    gather(lines, source, history.flat, offsets, out)
    return _lists(offsets, out, ~states)


def _values(history: PlainHistory, source: Positions, schema: pa.Schema) -> dict[str, Any]:
    """Keys, values and, if any event has them, the two values of compare-and-sets, of the lines that state them."""
    is_client = source >= 0
    lines, stated = history.lines, np.where(is_client, source, 0)
    f, shape, a, b, c = (
        column[stated] for column in (lines.f, lines.shape, lines.a, lines.b, lines.c)
    )
    is_cas = is_client & (f == layout.CAS)
    is_keyed = _has_key(is_cas, shape)
    has_value = is_client & ~is_cas & ((shape == layout.NUMBER) | (shape == layout.PAIR))
    columns = {
        "key": pa.array(a, mask=~(is_client & is_keyed)),
        "value": pa.array(np.where(is_keyed, b, a), mask=~has_value),
    }
    if "values" in schema.names:
        old, new = np.where(is_keyed, b, a)[is_cas], np.where(is_keyed, c, b)[is_cas]
        offsets = np.concatenate(([0], np.cumsum(2 * is_cas)))
        columns["values"] = _lists(offsets, np.column_stack((old, new)).ravel(), ~is_cas)
    return columns


def _has_key(is_cas: Any, shape: Any) -> Any:
    """Whether the first number of a value is a key: not if it is alone, nor the first one of a compare-and-set."""
    is_pair = (shape == layout.PAIR) & ~is_cas
    return is_pair | (shape == layout.PAIR_NIL) | (shape == layout.NESTED)


def _lists(offsets: Any, elements: Any, is_unset: Any) -> pa.Array:
    """Lists of numbers; unset where the mask is true."""
    bounds = pa.array(offsets.astype(np.int32))
    return pa.ListArray.from_arrays(bounds, pa.array(elements), mask=pa.array(is_unset))


def _write_origins(history: PlainHistory, directory: Path) -> None:
    """Write line and index of each event, in the order of ``seq``."""
    origins = np.empty((len(history.seq), 2), dtype=np.int64)
    origins[history.seq, 0] = history.line
    origins[history.seq, 1] = history.lines.indexes
    np.save(directory / FILE, origins)
