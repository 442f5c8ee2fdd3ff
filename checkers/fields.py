"""Which property constrains which field of which kind of event, found by experiment.

A property *constrains* a field if there is a small history that keeps the property and a change of that field alone
breaks it. The smallest breaking histories of the property (``Property.breaks``) give such pairs: a history that breaks
the property, and the same history with another value in one field of one event, in which nothing is found any more.
A property *reads* a field if its check asks for the kind and the column; that proves nothing, and is listed apart.

Left out are the columns that say which event it is and what it is about: ``IDENTITY``. Kinds of other systems'
histories are left out too. A field that no property constrains or reads has a reason (``reason``).
``tests/checkers/test_fields.py`` fails for a field in neither list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Verdict
from nemesis.checkers.framework.property import History, Property
from nemesis.history.events import Event, Kind
from nemesis.history.memory import history_of
from nemesis.history.schema import NUMBER_LISTS
from nemesis.history.vocabulary.checking import MODULES
from nemesis.history.vocabulary.declaring import OUR_CLIENTS, View, declarations

assert MODULES, "the modules that declare the kinds have to be imported"

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "coverage-of-fields.md"
IDENTITY: Final = frozenset({*View.__struct_fields__, "topic", "partition", "topic_id", "op", "f"})
"""Who recorded the event, when, and about which partition or operation: every grouping depends on these."""


class Field(NamedTuple):
    """A column of a kind of event; of an operation of clients, of one function."""

    kind: str
    f: str | None
    column: str


class Coverage(NamedTuple):
    """What is known of one field: the names of properties, in the order of reports."""

    constrained_by: tuple[str, ...]
    read_by: tuple[str, ...]


def declared_fields() -> list[Field]:
    """Return all fields of the kinds of our own runs, in the order of ``Kind``, of one kind by function."""
    kinds = [*Kind]
    listed = [
        Field(item.kind.value, item.f, column)
        for item in sorted(declarations(), key=lambda item: (kinds.index(item.kind), item.f or ""))
        if OUR_CLIENTS in item.workloads
        for column in item.view.__struct_fields__
        if column not in IDENTITY
    ]
    return list(dict.fromkeys(listed))


@cache
def coverage() -> Mapping[Field, Coverage]:
    """Return what is known of each declared field; takes some seconds, because every field of every break is tried."""
    proved: dict[Field, set[str]] = defaultdict(set)
    for decided in CHECKERS.values():
        for field in _constrained(decided):
            proved[field].add(decided.name)
    return MappingProxyType(
        {
            field: Coverage(
                tuple(name for name in CHECKERS if name in proved[field]),
                tuple(
                    name
                    for name, decided in CHECKERS.items()
                    if name not in proved[field]
                    and field.kind in decided.needs
                    and field.column in decided.check.columns
                ),
            )
            for field in declared_fields()
        }
    )


def _constrained(decided: Property) -> set[Field]:
    """Return the fields of which one value breaks the property and another one does not."""
    constrained: set[Field] = set()
    for history in decided.breaks:
        if not _is_broken(decided, history):
            continue  # what cannot be decided proves nothing
        for index, event in enumerate(history):
            for column, value in _values(event):
                field = Field(event.kind, event.f, column)
                is_read = event.kind in decided.needs and column in decided.check.columns
                if field in constrained or not is_read:
                    continue
                others = _others(value, column, history)
                if any(_is_kept(decided, history, index, column, other) for other in others):
                    constrained.add(field)
    return constrained


def _values(event: Event) -> Iterator[tuple[str, Any]]:
    for column in event.__struct_fields__:
        value = getattr(event, column)
        if column not in IDENTITY and value is not None:
            yield column, value


def _is_kept(
    decided: Property, history: Sequence[Event], index: int, column: str, value: Any
) -> bool:
    changed = msgspec.structs.replace(history[index], **{column: value})
    return not _is_broken(decided, (*history[:index], changed, *history[index + 1 :]))


def _is_broken(decided: Property, history: History) -> bool:
    results = run_checks(history_of(history).row_groups, [decided.check()])
    (result,) = (result for result in results if result.property == decided.name)
    return any(finding.verdict is Verdict.INVALID for finding in result.findings)


def _others(value: Any, column: str, history: Sequence[Event]) -> list[Any]:
    """Return other values of the column's type: near ones, extreme ones, those of other events of the history."""
    if isinstance(value, bool):
        return [not value]
    present = [getattr(event, column) for event in history]
    candidates: list[Any] = [other for other in present if type(other) is type(value)]
    if isinstance(value, int):
        candidates += [value - 1, value + 1, 0, value + 1000]
    elif isinstance(value, str):
        candidates += [*_WORDS.get(column, ()), "another"]
    elif column == "targets":
        candidates += [[], ["broker-1"], ["broker-2"]]
    elif isinstance(value, list) and column not in NUMBER_LISTS:
        candidates += [value[1:], value[:-1], [*value, "another"]]
    elif isinstance(value, list):
        candidates += [value[1:], value[:-1], [*value, 99], *([number] for number in range(4))]
        candidates += [[1, 2], [1, 2, 3]]
    return [other for other in candidates if other != value]


_NAMED: Final = 4
"""Properties that only read a field are named up to this number."""

_WORDS: Final = MappingProxyType(
    {
        "error": ("NONE", "STALE_CONTROLLER_EPOCH"),
        "strategy": ("preferred", "offline", "unclean", "remove-from-isr"),
        "to_state": ("New", "Online", "Offline"),
        "from_state": ("NonExistent", "New", "Online", "Offline"),
        "zk_op": ("create", "setData", "delete", "check"),
        "effect": ("measured", "verified"),
        "path": ("/other",),
        "data": ("1",),
    }
)
"""Words of which a check knows the meaning, by column."""

_NOT_SENT: Final = "a refused write changed nothing; it is there for people who read the history"
_ATTEMPT: Final = "an intention: what was committed, in the transaction log, is constrained"
_WALL_CLOCK: Final = "wall clocks may be wrong: no property may rely on them"
_PRODUCER: Final = "for people; that nothing is stored twice is judged by the values (`duplicate`)"
_TRANSACTION: Final = "names the transaction and its replica; its markers are constrained"
_TOGETHER: Final = "says which records and requests belong together"
_REASON_BY_KIND: Final = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "transaction-opened",
                "marker-appended",
                "transaction-partition-added",
                "transaction-completed",
                "stored-marker",
            ),
            _TRANSACTION,
        ),
        "znode-refused": _NOT_SENT,
        "znode-outcome": _ATTEMPT,
        "fetch-answered": "names the cause of a finding; followers are judged by their logs",
        "isr-change-proposed": "a proposal; what is committed (`znode`, `alter-partition-handled`) is constrained",
    }
)
_REASON_BY_COLUMN: Final = MappingProxyType(
    {
        "wall_ms": _WALL_CLOCK,
        "producer_id": _PRODUCER,
        "producer_epoch": _PRODUCER,
        "sequence": _PRODUCER,
        "transactional_id": _TOGETHER,
        "transaction": _TOGETHER,
        "isolation": "what a reader asked for; what it is given is judged by the values",
        "last_stable_offset": "what a leader believes; what a reader is given is judged by the values",
        "aborted": "what a reader leaves out; what it is given is judged by the values",
        "bytes_before": "a measure of the cleaner's work",
        "bytes_after": "a measure of the cleaner's work",
        "log_dir": "paths differ from broker to broker; `log-dir-moves-end` constrains those that administrators name",
        "ephemeral": "implied by the path",
        "count": "tells a complete report from a torn one",
        "assignor": "what the members have agreed on; whose partitions are whose is constrained",
        "subscribed": "what a member wants; what is assigned to it is constrained",
        "instance": "names a static member; as which member it acts is constrained",
    }
)
_REASON_BY_FIELD: Final = MappingProxyType(
    {
        ("revoked", "reason"): "says why a member acted so; when it acted is constrained",
        (
            "controller-elected",
            "zk_version",
        ): "the fence; what gets past it breaks `stale-controller-fenced`",
        (
            "controlled-shutdown-handled",
            "broker_epoch",
        ): "a stale one is answered with an error, which is traced",
        (
            "alter-partition-handled",
            "partition_epoch",
        ): "compared with the znode's version by ZooKeeper itself",
        (
            "session-state",
            "session_state",
        ): "a broker may notice late; whose session it is, is used",
        (
            "end-state",
            "leader",
        ): "the convergence check compares it with ZooKeeper while the cluster runs",
        (
            "become-leader",
            "partition_epoch",
        ): "`partition-metadata` and the znode's version are constrained",
        (
            "become-follower",
            "partition_epoch",
        ): "`partition-metadata` and the znode's version are constrained",
        ("znode", "broker_epoch"): "the same number as `zxid`",
        **{
            (
                "metadata-updated",
                column,
            ): "`control-request-handled` and `partition-metadata` are constrained"
            for column in ("controller_epoch", "peer", "count")
        },
    }
)


def reason(field: Field) -> str | None:
    """Return why no property constrains the field; None if no reason is known."""
    return (
        _REASON_BY_FIELD.get((field.kind, field.column))
        or _REASON_BY_KIND.get(field.kind)
        or _REASON_BY_COLUMN.get(field.column)
    )


_HEAD: Final = """\
# Which property constrains which field

For each kind of event and each of its fields: the properties that *constrain* it, and those that only *read* it. A
property constrains a field if one of its smallest breaking histories is no longer broken when that field alone has
another value; that is tried when this page is written. A property reads a field if its check asks for it; a history in
which the field alone breaks the property may exist and is not among the smallest. The fields that identify an event
(process, time, topic, partition, operation) are left out. `python -m nemesis.checkers.fields` writes this page, and a
test compares both. A new field needs a property or a reason (`checkers/fields.py`).
"""


def fields_page() -> str:
    """Return the page of all fields."""
    known = coverage()
    constrained = sum(bool(known_of_field.constrained_by) for known_of_field in known.values())
    read = sum(
        not known_of_field.constrained_by and bool(known_of_field.read_by)
        for known_of_field in known.values()
    )
    rest = len(known) - constrained - read
    lines = [
        *_HEAD.splitlines(),
        "",
        f"{len(known)} fields: {constrained} constrained, {read} only read, {rest} neither, with a reason.",
        "",
        "| event | field | constrained by | read by, or the reason |",
        "|---|---|---|---|",
    ]
    for field, known_of_field in known.items():
        label = f"`{field.kind}`" if field.f is None else f"{field.kind} `{field.f}`"
        others = _few(known_of_field.read_by) or (
            "" if known_of_field.constrained_by else reason(field) or "–"
        )
        lines.append(
            f"| {label} | `{field.column}` | {', '.join(known_of_field.constrained_by) or '–'} | {others} |"
        )
    return "\n".join(lines) + "\n"


def _few(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside them."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


if __name__ == "__main__":
    PAGE.write_text(fields_page())
