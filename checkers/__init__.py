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
* ``segment_deletions``   no segment is deleted before its time
* ``broker_epochs``    requests and writes for an earlier incarnation of a broker are refused
* ``leadership``       leader epochs, one leader per epoch, elections from the ISR
* ``transitions``, ``state_machines``   the state machines of partitions and replicas
* ``replication``      high watermarks and the agreement of logs
* ``log``              what clients see: lost, unseen, duplicate, reordered
* ``groups``             consumer groups: generations, owners of partitions, committed offsets, progress,
                         rebalances in time
* ``transactions``       markers, transactions that hang, what readers of committed records are given, and who is fenced
* ``elections_answered``    preferred elections that are asked for are made
* ``deletion``, ``reassignment``   administrators' requests take effect, and nothing else does
* ``possible``, ``administered``   their models: the states that are possible after the known operations
* ``exceptions``       no broker raises an exception that it does not foresee
* ``convergence``, ``liveness``    whether the cluster recovered, and in time; how long what was missing
* ``causes``           what stopped a partition: the chain from its last write to the step that never came
* ``faults``           whether the faults had an effect
* ``initial_values``   what registers have before any write: stated, or concluded from reads
* ``linearizable``     registers, mutexes, sets, queues of any system's histories
* ``cycles``           transactions of any system's histories: dependency cycles
* ``foreign``          which checks judge another system's history, by its workload
* ``end_state``, ``assignments``, ``znodes``   rows that several checks share: the end, replicas, transactions
* ``zxid_times``    when ZooKeeper's transactions had certainly happened
* ``addressed``    the brokers to which a controller had sent a request before it wrote
* ``unclean``, ``read_after``      whether an unclean election was permitted when its controller read the settings
* ``power_cuts``       when a broker lost what it had not synced
* ``checking``         runs the checks, combines verdicts, explains findings
* ``explain``, ``faults_in_force``   findings step by step: their events in words, the faults active at the time
* ``fields``           which property constrains which field; generates ``docs/coverage-of-fields.md``
* ``pages``            generates ``docs/properties.md`` and ``docs/findings.md``

``CHECKERS`` has every registered property by name; ``select`` turns names into checks. Imports only ``history`` and
``registry`` of this repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from nemesis.checkers.broker_epochs import BROKER_EPOCH_FENCED
from nemesis.checkers.broker_failures import DEAD_BROKERS_REPLACED
from nemesis.checkers.client_offsets import CLIENT_OFFSETS_GROW
from nemesis.checkers.control_effects import CONTROL_REQUESTS_APPLIED
from nemesis.checkers.controller import (
    CONTROLLER_EPOCH_GROWS,
    SINGLE_CONTROLLER,
    STALE_CONTROLLER_FENCED,
)
from nemesis.checkers.convergence import CONVERGENCE
from nemesis.checkers.deletion import DELETION
from nemesis.checkers.elections_answered import ELECTIONS_ANSWERED
from nemesis.checkers.exceptions import NO_UNFORESEEN_EXCEPTION
from nemesis.checkers.faults import FAULT_EFFECT
from nemesis.checkers.foreign import FOREIGN, foreign_properties, foreign_property, select_foreign
from nemesis.checkers.framework.model import NotObserved
from nemesis.checkers.framework.property import Check, Property
from nemesis.checkers.groups.check import (
    FENCED_MEMBER,
    GENERATION_GROWS,
    OFFSETS_READ_AS_COMMITTED,
    ONE_OWNER_PER_GENERATION,
)
from nemesis.checkers.groups.membership import MEMBERSHIP_KEPT
from nemesis.checkers.groups.progress import GROUP_PROGRESS
from nemesis.checkers.groups.rebalances import REBALANCES_END
from nemesis.checkers.leadership import LEADER_EPOCH_GROWS, LEADER_FROM_ISR, ONE_LEADER_PER_EPOCH
from nemesis.checkers.liveness.check import LIVENESS
from nemesis.checkers.liveness.checkpoints import CHECKPOINTS_KEPT
from nemesis.checkers.liveness.compaction import COMPACTION_RUNS
from nemesis.checkers.liveness.isr_commits import HW_FOLLOWS_ISR
from nemesis.checkers.liveness.isr_shrinks import ISR_SHRINKS_IN_TIME
from nemesis.checkers.liveness.jobs import JOBS_ON_TIME
from nemesis.checkers.liveness.late_recovery import LATE_RECOVERY
from nemesis.checkers.liveness.leader_balance import LEADERS_BALANCED
from nemesis.checkers.liveness.log_dir_failures import LOG_DIR_FAILURES_HANDLED
from nemesis.checkers.liveness.log_dir_moves import LOG_DIR_MOVES_END
from nemesis.checkers.liveness.notifications import NOTIFICATIONS_HANDLED
from nemesis.checkers.liveness.offsets_at_rest import OFFSETS_AT_REST
from nemesis.checkers.liveness.retention import RETENTION_RUNS
from nemesis.checkers.liveness.settings_in_force import SETTINGS_TAKE_EFFECT
from nemesis.checkers.liveness.vacancies import CONTROLLER_ELECTED_IN_TIME
from nemesis.checkers.log.client_log import (
    DIRTY_READ,
    DUPLICATE,
    EARLIER_INCARNATION_READ,
    INCONSISTENT_OFFSET,
    LOST_WRITE,
    NONMONOTONIC_POLL,
    NONMONOTONIC_SEND,
    POLL_SKIP,
    STALE_READ_ABOVE_HW,
    UNSEEN,
    WITHHELD,
)
from nemesis.checkers.metadata import METADATA_NEVER_BACK
from nemesis.checkers.metadata_answers import METADATA_ANSWERED
from nemesis.checkers.office import OFFICE_KEPT
from nemesis.checkers.quorum import ONE_QUORUM_LEADER, QUORUM_COMMITS_STAY
from nemesis.checkers.reassignment import REASSIGNMENT
from nemesis.checkers.replication.commitment import ACK_AFTER_COMMIT, NO_TRUNCATION_BELOW_HW
from nemesis.checkers.replication.epoch_ends import EPOCH_ENDS_ANSWERED
from nemesis.checkers.replication.final_logs import FINAL_LOGS
from nemesis.checkers.replication.high_watermark import HW_BOUNDED
from nemesis.checkers.replication.hw_grows import HW_GROWS
from nemesis.checkers.replication.hw_sampled import HW_SAMPLED
from nemesis.checkers.replication.isr_joins import ISR_JOIN_CAUGHT_UP
from nemesis.checkers.replication.log_files import LOG_FILES_AGREE, SEGMENTS_ROLL
from nemesis.checkers.replication.log_start import LOG_START_BOUNDED
from nemesis.checkers.replication.logs import LEADER_COMPLETENESS, LOG_MATCHING
from nemesis.checkers.replication.min_isr import MIN_ISR_BEHIND_ACK
from nemesis.checkers.replication.own_log import (
    HW_WITHIN_LOG,
    LEADER_KEEPS_LOG,
    PRODUCERS_WITHIN_LOG,
)
from nemesis.checkers.segment_deletions import SEGMENTS_DELETED_BY_RULE
from nemesis.checkers.states_sent import STATES_SENT_AS_WRITTEN
from nemesis.checkers.times_answered import TIMES_ANSWERED
from nemesis.checkers.transactions.check import (
    ABORTED_READ,
    EXACTLY_ONCE,
    FENCED_PRODUCER,
    READ_BEYOND_LSO,
    TORN_TRANSACTION,
)
from nemesis.checkers.transactions.hanging import HANGING_TRANSACTION
from nemesis.checkers.transactions.markers import MARKER_EPOCH_GROWS, TORN_MARKERS
from nemesis.checkers.transitions import LEGAL_TRANSITION
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

_REGISTERED: Final[tuple[Property, ...]] = (
    SINGLE_CONTROLLER,
    CONTROLLER_EPOCH_GROWS,
    STALE_CONTROLLER_FENCED,
    BROKER_EPOCH_FENCED,
    OFFICE_KEPT,
    CONTROLLER_ELECTED_IN_TIME,
    ONE_QUORUM_LEADER,
    QUORUM_COMMITS_STAY,
    DEAD_BROKERS_REPLACED,
    LEADER_EPOCH_GROWS,
    ONE_LEADER_PER_EPOCH,
    LEADER_FROM_ISR,
    ELECTIONS_ANSWERED,
    LEGAL_TRANSITION,
    STATES_SENT_AS_WRITTEN,
    CONTROL_REQUESTS_APPLIED,
    METADATA_NEVER_BACK,
    METADATA_ANSWERED,
    HW_BOUNDED,
    HW_GROWS,
    HW_SAMPLED,
    HW_FOLLOWS_ISR,
    ISR_JOIN_CAUGHT_UP,
    ISR_SHRINKS_IN_TIME,
    LEADER_KEEPS_LOG,
    HW_WITHIN_LOG,
    PRODUCERS_WITHIN_LOG,
    NO_TRUNCATION_BELOW_HW,
    ACK_AFTER_COMMIT,
    MIN_ISR_BEHIND_ACK,
    LOG_START_BOUNDED,
    CLIENT_OFFSETS_GROW,
    TIMES_ANSWERED,
    EPOCH_ENDS_ANSWERED,
    LOG_MATCHING,
    LEADER_COMPLETENESS,
    FINAL_LOGS,
    LOG_FILES_AGREE,
    SEGMENTS_ROLL,
    OFFSETS_AT_REST,
    SETTINGS_TAKE_EFFECT,
    LOST_WRITE,
    UNSEEN,
    WITHHELD,
    STALE_READ_ABOVE_HW,
    DUPLICATE,
    INCONSISTENT_OFFSET,
    DIRTY_READ,
    NONMONOTONIC_POLL,
    POLL_SKIP,
    NONMONOTONIC_SEND,
    EARLIER_INCARNATION_READ,
    ONE_OWNER_PER_GENERATION,
    GENERATION_GROWS,
    FENCED_MEMBER,
    OFFSETS_READ_AS_COMMITTED,
    MEMBERSHIP_KEPT,
    GROUP_PROGRESS,
    REBALANCES_END,
    MARKER_EPOCH_GROWS,
    TORN_MARKERS,
    HANGING_TRANSACTION,
    ABORTED_READ,
    READ_BEYOND_LSO,
    TORN_TRANSACTION,
    FENCED_PRODUCER,
    EXACTLY_ONCE,
    DELETION,
    REASSIGNMENT,
    NO_UNFORESEEN_EXCEPTION,
    CONVERGENCE,
    LATE_RECOVERY,
    NOTIFICATIONS_HANDLED,
    LEADERS_BALANCED,
    LOG_DIR_FAILURES_HANDLED,
    LOG_DIR_MOVES_END,
    RETENTION_RUNS,
    SEGMENTS_DELETED_BY_RULE,
    COMPACTION_RUNS,
    CHECKPOINTS_KEPT,
    JOBS_ON_TIME,
    LIVENESS,
    FAULT_EFFECT,
)
"""The properties of our own runs, in the order of reports."""

CHECKERS: Final[Registry[Property]] = Registry("checker", by_name(_REGISTERED))
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
    return CHECKERS.get(name) or foreign_property(name)
