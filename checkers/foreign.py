"""Which checks judge a history from elsewhere: chosen by the name of its workload, never by looking.

The operations of other systems are events of the same schema (``nemesis.history.events``), and one word means different
things in different workloads: a ``read`` is of a register or of a set. So the user names the workload, and only
its checks are made. They are no part of ``CHECKERS``: in a run of ours they would see nothing, and a check that saw
nothing is ``unknown``.

Limit: a workload judges one kind of object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nemesis.checkers.cycles import (
    MODELS,
    STRICT_SERIALIZABLE,
    ListAppend,
    Model,
    RwRegister,
    Transactional,
)
from nemesis.checkers.cycles.asked_anomalies import counted, model_of
from nemesis.checkers.cycles.log_transactions import LogTransactions
from nemesis.checkers.cycles.long_fork import LongFork
from nemesis.checkers.cycles.models import Level, without_real_time
from nemesis.checkers.framework.property import Check, Property, property_names
from nemesis.checkers.linearizable import (
    Bank,
    CausalReverse,
    Counter,
    EventualCounter,
    FifoQueue,
    LinearizableCasRegister,
    LinearizableKeyValue,
    LinearizableMultiRegister,
    LinearizableMutex,
    LinearizableRegister,
    LinearizableSet,
    MonotonicKeys,
    PredicateInserts,
    Sequential,
    SetFull,
    TotalQueue,
    UniqueIds,
)
from nemesis.checkers.log.offset_log import OffsetLog

FOREIGN: Final[Mapping[str, tuple[type[Check], ...]]] = MappingProxyType(
    {
        "register": (LinearizableRegister,),
        "cas-register": (LinearizableCasRegister,),
        "mutex": (LinearizableMutex,),
        "set": (SetFull,),
        "linearizable-set": (LinearizableSet,),
        "queue": (TotalQueue,),
        "fifo-queue": (FifoQueue,),
        "counter": (Counter,),
        "g-counter": (EventualCounter,),
        "pn-counter": (EventualCounter,),
        "multi-register": (LinearizableMultiRegister,),
        "key-value": (LinearizableKeyValue,),
        "unique-ids": (UniqueIds,),
        "bank": (Bank,),
        "list-append": (ListAppend,),
        "rw-register": (RwRegister,),
        "causal-reverse": (CausalReverse,),
        "sequential": (Sequential,),
        "monotonic-keys": (MonotonicKeys,),
        "predicate-inserts": (PredicateInserts,),
        "long-fork": (LongFork,),
        "kafka": (OffsetLog, LogTransactions),
    }
)
"""The checks of each workload, in the order of reports."""

LATER: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "set": frozenset({"set-lost"}),
        "queue": frozenset({"queue-lost"}),
        "kafka": frozenset({"lost-write", "unseen"}),
    }
)
"""By workload, the properties whose findings an operation after the end of the history can explain: what is missing may
still be returned. Other findings of a history hold for each history that it is the beginning of."""

TRANSACTIONAL: Final = frozenset(
    workload
    for workload, checks in FOREIGN.items()
    if any(issubclass(check, Transactional) for check in checks)
)
"""Workloads of which anomalies can be asked for by name."""
MODELLED: Final = frozenset(
    workload
    for workload, checks in FOREIGN.items()
    if any(issubclass(check, Transactional | LogTransactions) for check in checks)
)
"""Workloads of which a consistency model says what transactions have to keep."""

KEYED: Final = frozenset(
    workload
    for workload, checks in FOREIGN.items()
    if any(issubclass(check, RwRegister) for check in checks)
)
"""Workloads of which options about keys say what orders of versions are possible."""
INITIALIZED: Final = (RwRegister, LinearizableRegister, LinearizableMultiRegister, Counter)
"""Checks of objects that have an initial value."""
HAS_INITIAL: Final = frozenset(
    workload
    for workload, checks in FOREIGN.items()
    if any(issubclass(check, INITIALIZED) for check in checks)
)
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


def foreign_property(name: str) -> Property | None:
    """Return the property of this name in the first workload that has one."""
    everything = (decided for workload in FOREIGN for decided in decided_in(workload))
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
    model = STRICT_SERIALIZABLE if consistency_model is None else MODELS[consistency_model]
    model = model_of(anomalies) if anomalies else model
    model = model if has_real_time else without_real_time(model)
    return [
        _made(check, model, initial, key_options, frozenset(wanted), has_real_time=has_real_time)
        for check in FOREIGN[workload]
        if wanted & set(property_names(check))
    ]


def _made(
    check: type[Check],
    model: Model,
    initial: int | None,
    key_options: Sequence[str],
    judged: frozenset[str],
    *,
    has_real_time: bool,
) -> Check:
    if issubclass(check, RwRegister):
        return check(
            model, initial, has_real_time=has_real_time, key_options=key_options, judged=judged
        )
    if issubclass(check, Transactional):
        return check(model, judged)
    if issubclass(check, LogTransactions):
        return check(model)
    if issubclass(check, OffsetLog):
        return check(reads_committed=model.level >= Level.G1)
    if issubclass(check, LinearizableRegister | LinearizableMultiRegister):
        return check(initial=initial)
    if issubclass(check, Counter):
        return check(0 if initial is None else initial)
    return check()
