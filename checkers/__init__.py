"""The judges: one module per family of properties, each with its prose and smallest breaking history.

* ``fold``, ``segment``, ``engine``   what a check is, what it sees, how it is run (start with ``fold``)
* ``columns``, ``following``, ``arrays``  the arrays behind a segment; those that are looked up instead of decoded
* ``model``                           verdicts, findings, results
* ``controller``                      one live controller per epoch, stale ones fenced
* ``broker_epochs``                   nothing is done in the name of an earlier life of a broker
* ``leadership``                      leader epochs, one leader per epoch, elections from the ISR
* ``transitions``                     the state machines of partitions and replicas
* ``replication``                     high watermarks and the agreement of logs
* ``linearizable``                    registers, mutexes, sets, queues of anybody's histories
* ``cycles``                          transactions of anybody's histories: dependency cycles
* ``compiled``                        kernels that numba compiles
* ``log``                             what clients see: lost, unseen, duplicate, reordered
* ``deletion``, ``reassignment``      what administrators asked for has come about, and nothing else
* ``possible``, ``administered``      their models: which states are possible after what is known
* ``end_state``, ``assignments``      what was seen at the end; what ZooKeeper had as replicas
* ``liveness``                        how long it was without controller, leaders, full ISRs, acknowledgements
* ``convergence``, ``faults``         did the cluster come back; did the faults strike at all
* ``unclean``, ``read_after``          whether an unclean election was permitted when its controller read the settings
* ``rare``, ``znodes``, ``findings``  what the checks above share
* ``explain``                         findings step by step: their events in words, and why they cannot all be
* ``foreign``                         which checks judge a history from elsewhere, by its workload

``CHECKERS`` names every property and the check that decides it; ``select`` turns names into checks. Imports of ours:
``history`` and ``registry`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from nemesis.checkers.broker_epochs import BrokerEpochFenced
from nemesis.checkers.controller import (
    ControllerEpochGrows,
    SingleController,
    StaleControllerFenced,
)
from nemesis.checkers.convergence import Convergence
from nemesis.checkers.deletion import Deletion
from nemesis.checkers.faults import FaultEffect
from nemesis.checkers.foreign import FOREIGN, foreign_properties, select_foreign
from nemesis.checkers.framework.fold import Check
from nemesis.checkers.leadership import LeaderEpochGrows, LeaderFromIsr, OneLeaderPerEpoch
from nemesis.checkers.liveness import Liveness
from nemesis.checkers.log import ClientLog
from nemesis.checkers.reassignment import Reassignment
from nemesis.checkers.replication.commitment import AckAfterCommit, NoTruncationBelowHw
from nemesis.checkers.replication.final_logs import FinalLogs
from nemesis.checkers.replication.high_watermark import HwBounded
from nemesis.checkers.replication.hw_grows import HwGrows
from nemesis.checkers.replication.log_start import LogStartBounded
from nemesis.checkers.replication.logs import ReplicaLogs
from nemesis.checkers.transitions import LegalTransition
from nemesis.registry import Registry

__all__ = ["CHECKERS", "FOREIGN", "foreign_properties", "select", "select_foreign"]

_IN_REPORT_ORDER: tuple[type[Check], ...] = (
    SingleController,
    ControllerEpochGrows,
    StaleControllerFenced,
    BrokerEpochFenced,
    LeaderEpochGrows,
    OneLeaderPerEpoch,
    LeaderFromIsr,
    LegalTransition,
    HwBounded,
    HwGrows,
    NoTruncationBelowHw,
    AckAfterCommit,
    LogStartBounded,
    ReplicaLogs,
    FinalLogs,
    ClientLog,
    Deletion,
    Reassignment,
    Convergence,
    Liveness,
    FaultEffect,
)

CHECKERS: Final[Registry[Callable[[], Check]]] = Registry(
    "checker", ((name, check) for check in _IN_REPORT_ORDER for name in check.property_names())
)
"""Every property by name, in the order of reports, and what makes the check that decides it. One check may decide
several properties: make each check once (``select`` does)."""


def select(names: Iterable[str] | None = None) -> list[Check]:
    """Return the checks that decide these properties (``None``: all), each once, in the order of reports.

    A check that decides several properties returns results for all of them. Raises KeyError for an unknown name.
    """
    wanted = set(CHECKERS) if names is None else set(names)
    for name in wanted:
        if name not in CHECKERS:
            raise KeyError(name)
    return [check() for check in _IN_REPORT_ORDER if wanted & set(check.property_names())]
