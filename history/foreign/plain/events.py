"""The events of a plain history, as an Arrow file among the raw files of its run.

The rows are those that ``importing.write_events`` writes as JSON lines for the same file. They are in the order of
time, so ``sorted_pieces`` uses the file as it is.
"""

from __future__ import annotations

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
from nemesis.history.foreign.plain.histories import PlainHistory
from nemesis.history.foreign.vocabulary import aside
from nemesis.history.schema import SCHEMA

BATCH_ROWS: Final = 128 * 1024
_KINDS: Final = (Kind.INVOKE.value, Kind.OK.value, Kind.FAIL.value, Kind.INFO.value)
_FUNCTIONS: Final = ("read", "write", "cas", "txn")


def write_plain(history: PlainHistory, directory: Path, raw: Path) -> Imported:
    """Write the events into ``raw``, and the lines of the events into ``directory``. Raises OSError."""
    rows = events_of_plain(history)
    with pa.OSFile(str(raw), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=BATCH_ROWS)
    np.save(directory / FILE, _origins(history))
    return Imported(
        operations=len(history.line),
        problems=history.problems.sentences(),
        notes=history.problems.notes(),
        has_real_time=True,
        is_timed=history.is_timed,
        may_lack_operations=False,
        is_cut_off=False,
    )


def events_of_plain(history: PlainHistory) -> pa.Table:
    """Return the events in the order of time: those columns of the schema that are set."""
    rows, is_client = history.rows, history.process >= 0
    columns: dict[str, Any] = {
        "time": history.time,
        "seq": history.seq,
        "op": pa.array(history.op, mask=~is_client),
    }
    columns |= _words(history)
    if (rows[is_client, layout.F] == layout.TXN).any():
        columns["micro_operations"] = _micro_operations(history)
    else:
        columns |= _values(history)
    fields = [field for field in SCHEMA if field.name in columns]
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _words(history: PlainHistory) -> dict[str, Any]:
    """Kinds, functions, processes, errors and the originals of operations of ``nemesis``."""
    functions = dict.fromkeys([*_FUNCTIONS, *(other.f for other in history.others.values())])
    f_codes = {f: code for code, f in enumerate(functions)}
    kind, f = history.rows[:, layout.TYPE].copy(), history.rows[:, layout.F].copy()
    originals: list[str | None] = [None] * len(kind) if history.others else []
    errors = dict(history.errors)
    for position, other in history.others.items():
        said = aside(other)
        kind[position], f[position] = layout.INFO, f_codes[other.f]
        originals[position] = said["original"]
        if other.error is not None:
            errors[position] = other.error
    names = [*map(str, history.process_names.tolist()), NEMESIS]
    process = np.where(history.process < 0, len(names) - 1, history.process)
    columns: dict[str, Any] = {
        "kind": _coded(kind, _KINDS),
        "f": _coded(f, tuple(functions)),
        "process": _coded(process, names),
    }
    if errors:
        texts = {position: word_of(error) for position, error in errors.items()}
        words = list(dict.fromkeys(texts.values()))
        codes = np.full(len(kind), -1, dtype=np.int64)
        numbers = {word: code for code, word in enumerate(words)}
        codes[list(texts)] = [numbers[text] for text in texts.values()]
        columns["error"] = _coded(codes, words)
    if originals:
        columns["original"] = originals
    return columns


def _coded(codes: np.ndarray[Any, np.dtype[np.int64]], words: Any) -> pa.DictionaryArray:
    """Words by their positions in a list, −1 for a row without a word."""

    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _micro_operations(history: PlainHistory) -> pa.Array:
    from nemesis.history.foreign.plain.pairing import gather

    source, rows = history.source, history.rows
    states = source >= 0
    lengths = rows[source[states], layout.FLAT_END] - rows[source[states], layout.FLAT_START]
    out = np.empty(int(lengths.sum()), dtype=np.int64)
    offsets = np.zeros(len(source) + 1, dtype=np.int64)
    gather(rows, source, history.flat, offsets, out)
    return _lists(offsets, out, ~states)


def _values(history: PlainHistory) -> dict[str, Any]:
    """Keys, values and the two values of compare-and-sets."""
    is_client = history.source >= 0
    source = np.where(is_client, history.source, 0)
    f, shape, a, b, c = (
        history.rows[:, column][source]
        for column in (layout.F, layout.SHAPE, layout.A, layout.B, layout.C)
    )
    is_cas = is_client & (f == layout.CAS)
    is_pair = shape == layout.PAIR
    is_alone = (shape == layout.NIL) | (shape == layout.NUMBER) | (is_cas & is_pair)
    has_value = is_client & ~is_cas & ((shape == layout.NUMBER) | is_pair)
    columns = {}
    if (is_client & ~is_alone).any():
        columns["key"] = pa.array(a, mask=~is_client | is_alone)
    columns["value"] = pa.array(np.where(is_alone, a, b), mask=~has_value)
    if is_cas.any():
        old, new = np.where(is_alone, a, b)[is_cas], np.where(is_alone, b, c)[is_cas]
        offsets = np.concatenate(([0], np.cumsum(2 * is_cas)))
        columns["values"] = _lists(offsets, np.column_stack((old, new)).ravel(), ~is_cas)
    return columns


def _lists(offsets: Any, elements: Any, is_unset: Any) -> pa.Array:
    """Lists of numbers; unset where the mask is true."""
    bounds = pa.array(offsets.astype(np.int32))
    return pa.ListArray.from_arrays(bounds, pa.array(elements), mask=pa.array(is_unset))


def _origins(history: PlainHistory) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Line and index of each event, in the order of ``seq``."""
    origins = np.empty((len(history.seq), 2), dtype=np.int64)
    origins[history.seq, 0] = history.line
    origins[history.seq, 1] = history.rows[:, layout.INDEX]
    return origins
