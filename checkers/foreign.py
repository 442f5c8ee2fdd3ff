"""Which checks judge a history from elsewhere: chosen by the name of its workload, never by looking.

The operations of other systems are events of the same schema (``nemesis.history.events``), and one word means different
things in different workloads: a ``read`` is of a register or of a set. So the user names the workload, and only
its checks are made. They are no part of ``CHECKERS``: in a run of ours they would see nothing, and a check that saw
nothing is ``unknown``.

Limit: a workload judges one kind of object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.cycles import MODELS, SERIALIZABLE, ListAppend, RwRegister, Transactional
from nemesis.checkers.cycles.log_transactions import LogTransactions
from nemesis.checkers.framework.fold import Check
from nemesis.checkers.linearizable import (
    FifoQueue,
    LinearizableCasRegister,
    LinearizableMutex,
    LinearizableRegister,
    LinearizableSet,
    SetFull,
    TotalQueue,
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
        "list-append": (ListAppend,),
        "rw-register": (RwRegister,),
        "kafka": (OffsetLog, LogTransactions),
    }
)
"""The checks of each workload, in the order of reports."""

SELF_EVIDENT: Final = frozenset(
    {
        "duplicate",
        "inconsistent-offset",
        "dirty-read",
        "nonmonotonic-send",
        *LogTransactions.properties,
    }
)
"""Of logs, what the operations of a finding prove by themselves. Whatever else says that something is not there, and
in a history that lacks operations it may be there all the same."""
TRANSACTIONS: Final = frozenset({"list-append", "rw-register"})
"""An order of versions and a cycle consist of what was observed: further transactions only add to them."""
MODELLED: Final = TRANSACTIONS | {"kafka"}
"""Workloads of which a consistency model says what transactions have to keep."""
EXPLICABLE: Final = frozenset({"garbage-read"})
"""Of transactions, what one that is missing may explain."""


def is_self_evident(workload: str, name: str) -> bool:
    """Whether a finding of a property holds however many operations the history lacks."""
    if workload in TRANSACTIONS:
        return name not in EXPLICABLE
    return workload == "kafka" and name in SELF_EVIDENT


def foreign_properties(workload: str) -> tuple[str, ...]:
    """Return the properties that are judged in this workload, in the order of reports; raises KeyError."""
    return tuple(name for check in FOREIGN[workload] for name in check.property_names())


def select_foreign(
    workload: str, names: Iterable[str] | None = None, consistency_model: str | None = None
) -> list[Check]:
    """Return the checks that decide these properties (``None``: all) of this workload, each once.

    A check that decides several properties returns results for all of them. Transactions are held against the
    consistency model of this name (``None``: serializable). Raises KeyError for an unknown name.
    """
    allowed = foreign_properties(workload)
    wanted = set(allowed if names is None else names)
    for name in wanted:
        if name not in allowed:
            raise KeyError(name)
    model = SERIALIZABLE if consistency_model is None else MODELS[consistency_model]
    return [
        check(model) if issubclass(check, Transactional | LogTransactions) else check()
        for check in FOREIGN[workload]
        if wanted & set(check.property_names())
    ]
