"""Which checks judge a history from elsewhere: chosen by the name of its workload, never by looking.

The operations of other systems are events of the same schema (``nemesis.history.events``), and one word means different
things in different workloads: a ``read`` is of a register or of a set. So the user names the workload, and only
its checks are made. They are no part of ``CHECKERS``: in a run of ours they would see nothing, and a check that saw
nothing is ``unknown``.

Limit: a workload judges one kind of object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Final

from nemesis.checkers.cycles.asked_anomalies import counted
from nemesis.checkers.cycles.models import STRICT_SERIALIZABLE
from nemesis.checkers.framework.asked import Asked, HasOptions
from nemesis.checkers.framework.property import Check, Property, property_names


class _Checks(Mapping[str, tuple[type[Check], ...]]):
    """The checks of each workload; those of one workload are imported when they are asked for.

    All modules of checks together take as long to import as a small history takes to be judged.
    """

    def __init__(self, names: Mapping[str, tuple[str, ...]]) -> None:
        self._names = names

    def __getitem__(self, workload: str) -> tuple[type[Check], ...]:
        return tuple(resolve_name(f"{__package__}.{name}") for name in self._names[workload])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


FOREIGN: Final[Mapping[str, tuple[type[Check], ...]]] = _Checks(
    {
        "register": ("linearizable.registers:LinearizableRegister",),
        "cas-register": ("linearizable.registers:LinearizableCasRegister",),
        "mutex": ("linearizable.mutex:LinearizableMutex",),
        "set": ("linearizable.sets:SetFull",),
        "linearizable-set": ("linearizable.sets:LinearizableSet",),
        "queue": ("linearizable.queues:TotalQueue",),
        "fifo-queue": ("linearizable.queues:FifoQueue",),
        "counter": ("linearizable.counters:Counter",),
        "g-counter": ("linearizable.eventual_counters:EventualCounter",),
        "pn-counter": ("linearizable.eventual_counters:EventualCounter",),
        "multi-register": ("linearizable.multi_registers:LinearizableMultiRegister",),
        "key-value": ("linearizable.key_values:LinearizableKeyValue",),
        "unique-ids": ("linearizable.unique_ids:UniqueIds",),
        "bank": ("linearizable.banks:Bank",),
        "list-append": ("cycles.check:ListAppend",),
        "rw-register": ("cycles.check:RwRegister",),
        "causal-reverse": ("linearizable.causal_reverse:CausalReverse",),
        "sequential": ("linearizable.subkeys:Sequential",),
        "monotonic-keys": ("linearizable.monotonic_keys:MonotonicKeys",),
        "predicate-inserts": ("linearizable.predicate_inserts:PredicateInserts",),
        "long-fork": ("cycles.long_fork:LongFork",),
        "kafka": ("log.offset_log:OffsetLog", "cycles.log_transactions:LogTransactions"),
    }
)
"""The checks of each workload, in the order of reports."""
KAFKA: Final = "kafka"

LATER: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "set": frozenset({"set-lost"}),
        "queue": frozenset({"queue-lost"}),
        "kafka": frozenset({"lost-write", "unseen"}),
    }
)
"""By workload, the properties whose findings an operation after the end of the history can explain: what is missing may
still be returned. Other findings of a history hold for each history that it is the beginning of."""

TRANSACTIONAL: Final = frozenset({"list-append", "rw-register"})
"""Workloads of which anomalies can be asked for by name."""
MODELLED: Final = TRANSACTIONAL | {KAFKA}
"""Workloads of which a consistency model says what transactions have to keep."""
KEYED: Final = frozenset({"rw-register"})
"""Workloads of which options about keys say what orders of versions are possible."""
HAS_INITIAL: Final = KEYED | {"register", "cas-register", "multi-register", "counter"}
"""Workloads of objects that have an initial value, which a user may state."""


def named_model(workload: str | None, consistency_model: str | None) -> str | None:
    """Return the model that a verdict about this workload names: the one asked for, or the default of transactions."""
    if consistency_model is not None or workload is None or workload not in FOREIGN:
        return consistency_model
    return STRICT_SERIALIZABLE.name if workload in TRANSACTIONAL else None


def is_self_evident(workload: str, name: str) -> bool:
    """Return whether a finding of a property holds however many operations the history lacks."""
    return any(decided.name == name and decided.is_self_evident for decided in decided_in(workload))


def is_explained_later(workload: str, name: str) -> bool:
    """Return whether an operation after the end of the history can explain a finding of a property."""
    return name in LATER.get(workload, ())


def foreign_properties(workload: str) -> tuple[str, ...]:
    """Return the properties that are judged in this workload, in the order of reports; raises KeyError."""
    return tuple(decided.name for decided in decided_in(workload))


def asked_properties(workload: str, anomalies: Sequence[str]) -> frozenset[str]:
    """Return the properties of a workload that count if these anomalies are asked for; raises KeyError."""
    return counted(anomalies) & set(foreign_properties(workload))


def foreign_property(name: str, workloads: Iterable[str] = FOREIGN) -> Property | None:
    """Return the property of this name in the first of these workloads that has one."""
    everything = (decided for workload in workloads for decided in decided_in(workload))
    return next((decided for decided in everything if decided.name == name), None)


def decided_in(workload: str) -> Iterator[Property]:
    """Yield the properties of a workload, in the order of reports."""
    return (decided for check in FOREIGN[workload] for decided in check.properties())


def select_foreign(
    workload: str,
    names: Iterable[str] | None = None,
    consistency_model: str | None = None,
    *,
    has_real_time: bool = True,
    initial: int | None = None,
    anomalies: Sequence[str] = (),
    key_options: Sequence[str] = (),
) -> list[Check]:
    """Return the checks that decide these properties (``None``: all) of this workload, each once.

    A check that decides several properties returns results for all of them. Transactions are held against the
    consistency model of this name (``None``: strict-serializable, as in Elle), without real time if the history does
    not state it. ``initial`` is the number of the initial value of registers (``None``: not stated). ``anomalies``
    are those that are forbidden in place of a model. ``key_options`` state what each key keeps. Raises KeyError for an
    unknown name.
    """
    allowed = foreign_properties(workload)
    wanted = set(allowed if names is None else names)
    for name in wanted:
        if name not in allowed:
            raise KeyError(name)
    asked = Asked(
        consistency_model=consistency_model,
        anomalies=anomalies,
        initial=initial,
        key_options=key_options,
        judged=frozenset(wanted),
        has_real_time=has_real_time,
    )
    return [
        check.made_for(asked) if issubclass(check, HasOptions) else check()
        for check in FOREIGN[workload]
        if wanted & set(property_names(check))
    ]
