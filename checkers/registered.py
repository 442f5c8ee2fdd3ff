"""Every property of our own runs, in the order of reports.

A module of its own: to judge another system's history, these properties and what they need are not imported.
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers.broker_epochs import BROKER_EPOCH_FENCED
from nemesis.checkers.broker_failures import DEAD_BROKERS_REPLACED
from nemesis.checkers.clean_stops import CLEAN_STOP_KEEPS_LOGS
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
from nemesis.checkers.fetches_answered import FETCHES_ANSWERED
from nemesis.checkers.framework.property import Property
from nemesis.checkers.groups.check import (
    FENCED_MEMBER,
    GENERATION_GROWS,
    OFFSETS_READ_AS_COMMITTED,
    ONE_OWNER_PER_GENERATION,
)
from nemesis.checkers.groups.membership import MEMBERSHIP_KEPT
from nemesis.checkers.groups.progress import GROUP_PROGRESS
from nemesis.checkers.groups.rebalances import REBALANCES_END
from nemesis.checkers.leader_epochs_fenced import LEADER_EPOCHS_FENCED
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
from nemesis.checkers.liveness.requests_answered import REQUESTS_ANSWERED
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
from nemesis.checkers.replication.isr_epochs import ISR_EPOCHS_STATED
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
from nemesis.checkers.tombstones import TOMBSTONES_KEPT
from nemesis.checkers.transactions.at_rest import TRANSACTIONS_POSSIBLE
from nemesis.checkers.transactions.check import (
    ABORTED_READ,
    EXACTLY_ONCE,
    FENCED_PRODUCER,
    READ_BEYOND_LSO,
    TORN_TRANSACTION,
    TRANSACTION_ORDER,
)
from nemesis.checkers.transactions.epochs_kept import PRODUCER_EPOCH_KEPT
from nemesis.checkers.transactions.hanging import HANGING_TRANSACTION
from nemesis.checkers.transactions.kept_markers import MARKERS_KEPT
from nemesis.checkers.transactions.markers import MARKER_EPOCH_GROWS, TORN_MARKERS
from nemesis.checkers.transactions.stable_at_rest import LAST_STABLE_OFFSET_AT_REST
from nemesis.checkers.transitions import LEGAL_TRANSITION

REGISTERED: Final[tuple[Property, ...]] = (
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
    ISR_EPOCHS_STATED,
    ISR_SHRINKS_IN_TIME,
    LEADER_KEEPS_LOG,
    HW_WITHIN_LOG,
    PRODUCERS_WITHIN_LOG,
    CLEAN_STOP_KEEPS_LOGS,
    NO_TRUNCATION_BELOW_HW,
    ACK_AFTER_COMMIT,
    MIN_ISR_BEHIND_ACK,
    LOG_START_BOUNDED,
    CLIENT_OFFSETS_GROW,
    TIMES_ANSWERED,
    EPOCH_ENDS_ANSWERED,
    LEADER_EPOCHS_FENCED,
    FETCHES_ANSWERED,
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
    MARKERS_KEPT,
    HANGING_TRANSACTION,
    ABORTED_READ,
    READ_BEYOND_LSO,
    TORN_TRANSACTION,
    FENCED_PRODUCER,
    EXACTLY_ONCE,
    TRANSACTION_ORDER,
    PRODUCER_EPOCH_KEPT,
    TRANSACTIONS_POSSIBLE,
    LAST_STABLE_OFFSET_AT_REST,
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
    TOMBSTONES_KEPT,
    CHECKPOINTS_KEPT,
    JOBS_ON_TIME,
    REQUESTS_ANSWERED,
    LIVENESS,
    FAULT_EFFECT,
)
"""The order of reports."""
