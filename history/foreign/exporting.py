"""The operations of a run as Jepsen's history: EDN, one map per line.

A history that came from elsewhere goes back in the form of its workload; read again, it makes the same events. What
our own clients did becomes a history of Jepsen's kafka workload: each partition is a key (``"orders-0"``), each send
and each poll an operation of one micro-operation.

Jepsen's processes are numbers that do one thing at a time, and do nothing more once they do not know how something
ended. So each client of ours is a number, another one after each ``info``, and more than one while it has several
operations under way; ``:client`` has its name. A send that did not ask for all replicas promises nothing: its answer is
exported as ``info``.

Limits: all operations are in memory at once. Of our own clients, only sends and polls; a topic that was deleted
and created anew is one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nemesis.history.errors import MissingHistoryError
from nemesis.history.events import Kind
from nemesis.history.foreign.edn import Keyword, dumps, keyword_or_text
from nemesis.history.foreign.importing import WORKLOADS
from nemesis.history.foreign.logs import ALL_REPLICAS
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.operations import FAIL, INFO, INVOKE, OK, Operation, form_of
from nemesis.history.manifest import MANIFEST
from nemesis.history.reader import History, open_history
from nemesis.history.renewal import renew
from nemesis.history.run_directory import RunDirectory

KINDS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO)
COLUMNS: Final = (
    "time",
    "process",
    "kind",
    "seq",
    "op",
    "f",
    "key",
    "value",
    "values",
    "offsets",
    "acks",
    "topic",
    "partition",
    "offset",
    "error",
    "micro_operations",
    "original",
    "part_of",
)
DATA: Final = ("send", "poll")
Row = Mapping[str, Any]


def operations_of(run: RunDirectory) -> Iterable[Operation]:
    """Return the operations of a run's clients in order; raises HistoryError, also when there are none."""
    workload = run.read_info().foreign.get("workload")
    if not (run.history / MANIFEST).exists():
        renew(run)
    rows = _rows(open_history(run.history))
    if workload is None:
        rows = [row for row in rows if row["f"] in DATA]
    if not rows:
        raise MissingHistoryError(f"{run.path} has no operations of clients")
    if workload is None:
        return _of_our_clients(rows)
    return WORKLOADS[workload]().operations(rows, Names.read(run.path))


def write(operations: Iterable[Operation], path: Path) -> int:
    """Write a new file; return how many operations it has. Raises OSError, FileExistsError if the file exists.

    The file appears under its name when it is whole.
    """
    if path.exists():
        raise FileExistsError(path)
    draft = path.with_name(f".{path.name}.draft")
    count = 0
    try:
        with draft.open("w", encoding="utf-8") as file:
            for count, operation in enumerate(operations, start=1):
                operation.index = count - 1
                file.write(dumps(form_of(operation)) + "\n")
        path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    return count


def _rows(history: History) -> list[dict[str, Any]]:
    """The events of operations in order of time, unset columns left out."""
    wanted = pa.array([kind.value for kind in KINDS])
    tables = []
    for group in history.row_groups:
        rows = group.read(COLUMNS).select(COLUMNS)
        kinds = pc.cast(rows.column("kind"), pa.string())
        tables.append(rows.filter(pc.is_in(kinds, wanted)))
    if not tables:
        return []
    joined = pa.concat_tables(tables).unify_dictionaries()
    permutation = pc.sort_indices(joined, [("time", "ascending"), ("seq", "ascending")])
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in joined.take(permutation).to_pylist()
    ]


def _of_our_clients(rows: list[dict[str, Any]]) -> Iterator[Operation]:
    numbers = _Numbers()
    invoked: dict[tuple[str, int], tuple[Row, int]] = {}
    origin = rows[0]["time"]
    for line, row in enumerate(rows, start=1):
        ours = row["process"], row.get("op", -1)
        if row["kind"] == INVOKE:
            invoked[ours] = row, numbers.take(row["process"])
        if ours not in invoked:
            continue
        asked, process = invoked[ours]
        kind = _outcome(row, asked)
        if kind in (OK, FAIL):
            numbers.give_back(row["process"], process)
        yield Operation(
            line=line,
            type=kind,
            process=process,
            f=row["f"],
            value=(_micro(row, asked, kind),),
            time=row["time"] - origin,
            error=None if (error := row.get("error")) is None else keyword_or_text(error),
            other={"client": row["process"]},
        )


def _outcome(row: Row, asked: Row) -> str:
    kind = str(row["kind"])
    promises = asked["f"] != "send" or asked.get("acks", ALL_REPLICAS) == ALL_REPLICAS
    return INFO if kind == OK and not promises else kind


def _micro(row: Row, asked: Row, kind: str) -> tuple[Any, ...]:
    if "topic" not in asked:
        return (Keyword(row["f"]),)
    key = f"{asked['topic']}-{asked.get('partition', 0)}"
    if row["f"] == "send":
        value = asked.get("value")
        is_placed = kind == OK and row.get("offset") is not None
        return (Keyword("send"), key, (row["offset"], value) if is_placed else value)
    if kind != OK:
        return (Keyword("poll"),)
    records = tuple(zip(row.get("offsets", ()), row.get("values", ()), strict=True))
    return (Keyword("poll"), {key: records} if records else {})


class _Numbers:
    """The numbers that stand for our clients: one for each operation under way."""

    def __init__(self) -> None:
        self._free: dict[str, list[int]] = {}
        self._next = 0

    def take(self, client: str) -> int:
        """Return the lowest number of a client that is free, a new one if none is."""
        free = self._free.setdefault(client, [])
        if free:
            return free.pop(free.index(min(free)))
        self._next += 1
        return self._next - 1

    def give_back(self, client: str, number: int) -> None:
        """Let the client use a number again."""
        self._free[client].append(number)
