"""The checkers: what a history must show, one module or folder per family of properties.

A module's docstring states its properties; ``docs/adding.md`` says how to add one. Start with ``framework``.

* ``framework``        shapes of checks, segments, verdicts, the engine: everything that no property owns
* ``breaks``           the smallest histories that break each property
* ``controller``       one live controller per epoch, deposed ones fenced
* ``quorum``           one leader of a KRaft quorum per epoch, nothing committed is lost
* ``office``, ``broker_failures``   the controller leaves its office for a reason; brokers that are gone are replaced
* ``control_effects``  what brokers answer to the controller without an error has happened
* ``metadata``         what brokers know of the cluster never goes back
* ``metadata_answers``   what brokers answer to Metadata is what they know
* ``states_sent``      the states that a controller sends are those in ZooKeeper
* ``client_offsets``   the first and last offsets that clients see never go back
* ``times_answered``   the offset that a client gets for a time is that of the first such record
* ``fetches_answered``   answers to fetches name the partitions that were asked for
* ``segment_deletions``   no segment is deleted before its time
* ``tombstones``       a tombstone stays for ``delete.retention.ms``
* ``broker_epochs``    requests and writes for an earlier incarnation of a broker are refused
* ``leader_epochs_fenced``   queries that state another leader epoch than the broker's are refused
* ``leadership``       leader epochs, one leader per epoch, elections from the ISR
* ``transitions``, ``state_machines``   the state machines of partitions and replicas
* ``clean_stops``      a broker that stopped in order opens its logs as it closed them
* ``replication``      high watermarks and the agreement of logs
* ``log``              what clients see: lost, unseen, duplicate, reordered
* ``groups``             consumer groups: generations, owners of partitions, committed offsets, progress,
                         rebalances in time
* ``transactions``       markers, transactions that hang, what readers of committed records are given, and who is fenced
* ``elections_answered``    preferred elections that are asked for are made
* ``deletion``, ``reassignment``   administrators' requests take effect, and nothing else does
* ``requested_moves``   moves requested through ZooKeeper that a controller dropped
* ``possible``, ``administered``   their models: the states that are possible after the known operations
* ``exceptions``       no broker raises an exception that it does not foresee
* ``convergence``, ``liveness``    whether the cluster recovered, and in time; how long what was missing
* ``causes``           what stopped a partition: the chain from its last write to the step that never came
* ``faults``           whether the faults had an effect
* ``initial_values``   what registers have before any write: stated, or concluded from reads
* ``linearizable``     registers, mutexes, sets, queues of any system's histories
* ``cycles``           transactions of any system's histories: dependency cycles
* ``registered``       every property of our own runs, imported at the first use of ``CHECKERS``
* ``foreign``          which checks judge another system's history, by its workload
* ``end_state``, ``assignments``, ``znodes``   rows that several checks share: the end, replicas, transactions
* ``zxid_times``    when ZooKeeper's transactions had certainly happened
* ``addressed``    the brokers to which a controller had sent a request before it wrote
* ``settings_written``   which settings of topics and brokers counted in the whole run, and which may have counted
* ``unclean``, ``read_after``      whether an unclean election was permitted when its controller read the settings
* ``power_cuts``       when a broker lost what it had not synced
* ``losses``           whether acknowledged records may be lost, and what follows from it is allowed
* ``checking``         runs the checks, combines verdicts
* ``explaining``       findings with whole events, faults, causes and steps
* ``explain``, ``faults_in_force``   findings step by step: their events in words, the faults active at the time
* ``fields``           which property constrains which field; generates ``docs/coverage-of-fields.md``
* ``pages``            generates ``docs/properties.md`` and ``docs/findings.md``

``CHECKERS`` has every registered property by name; ``select`` turns names into checks. Imports only ``history`` and
``registry`` of this repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from nemesis.checkers.foreign import (
    FOREIGN,
    KAFKA,
    foreign_properties,
    foreign_property,
    select_foreign,
)
from nemesis.checkers.framework.model import NotObserved
from nemesis.checkers.framework.property import Check, Property
from nemesis.history.sources import EventSource
from nemesis.registry import Registry, by_name

__all__ = [
    "CHECKERS",
    "FOREIGN",
    "Property",
    "foreign_properties",
    "judged_by_default",
    "property_named",
    "select",
    "select_foreign",
]


def _own_properties() -> Iterator[tuple[str, Property]]:
    # Imported at the first use: the modules of all properties take longer than a small history of another system.
    from nemesis.checkers.registered import REGISTERED

    return by_name(REGISTERED)


CHECKERS: Final[Registry[Property]] = Registry("checker", load=_own_properties)
"""Every property of our own runs by name, in the order of reports."""


def select(names: Iterable[str] | None = None) -> list[Check]:
    """Return the checks that decide these properties (``None``: all), each once, in the order of reports.

    A check that decides several properties returns results for all of them. Raises KeyError for an unknown name.
    """
    wanted = set(CHECKERS) if names is None else set(names)
    for name in wanted:
        if name not in CHECKERS:
            raise KeyError(name)
    checks = dict.fromkeys(checker.check for name, checker in CHECKERS.items() if name in wanted)
    return [check() for check in checks]


def judged_by_default(
    observed: Collection[EventSource], workload: str | None = None
) -> tuple[str, ...]:
    """Return our own properties in the order of reports.

    Left out are samples of what these sources show exactly, properties of a quorum where they show none, and properties
    of other workloads than this one (``None``: of no workload).
    """
    return tuple(
        name
        for name, known in CHECKERS.items()
        if (not known.stands_in_for or known.incomplete_without(observed))
        and (not known.is_of_quorum or EventSource.QUORUM_LOG in observed)
        and (workload is None or not known.workloads or workload in known.workloads)
    )


def recorded(events_format: int) -> tuple[str, ...]:
    """Return the properties for which runs of this format of events recorded enough, in the order of reports."""
    return tuple(
        name for name, decided in CHECKERS.items() if decided.recorded_since <= events_format
    )


def not_observed(
    names: Iterable[str], observed: Collection[EventSource]
) -> tuple[NotObserved, ...]:
    """Return those of our own properties that need a source beyond the observed ones; raises KeyError."""
    missing = ((name, CHECKERS[name].not_observed_without(observed)) for name in names)
    return tuple(
        NotObserved(property=name, without=without) for name, without in missing if without
    )


def property_named(name: str) -> Property | None:
    """Return the property of this name, our own or a foreign workload's; ``None`` if neither has one."""
    # Only the properties of logs share their names with ours, which come first.
    others = (workload for workload in FOREIGN if workload != KAFKA)
    return foreign_property(name, others) or CHECKERS.get(name) or foreign_property(name, [KAFKA])
