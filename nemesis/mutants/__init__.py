"""Planted bugs, one module each, most of them real ones from Kafka's history.

A module tells its story in the docstring (what, where it was fixed, which property must catch it) and holds one
``MUTANT``. ``base`` says what a mutant is (start here). The reference itself never knows of them: a broker
process that is told to carry a mutant replaces a method when it starts (``nemesis.runtimes.reference_launcher``).
``mutant_file`` loads a bug from a file outside the package, ``chosen`` is the bug that a user chose by name or file.
``generated`` has mutants that chance chooses. ``probe`` counts what a mutant does, ``reach`` does so for planted bugs.
``unstored_groups`` is what some bugs of groups share.
"""

from typing import Final

from nemesis.mutants.aborted_offsets_committed import MUTANT as ABORTED_OFFSETS_COMMITTED
from nemesis.mutants.aborted_transactions_unnamed import MUTANT as ABORTED_TRANSACTIONS_UNNAMED
from nemesis.mutants.acknowledge_before_replication import MUTANT as ACKNOWLEDGE_BEFORE_REPLICATION
from nemesis.mutants.added_partitions_forgotten import MUTANT as ADDED_PARTITIONS_FORGOTTEN
from nemesis.mutants.age_in_other_units import MUTANT as AGE_IN_OTHER_UNITS
from nemesis.mutants.another_replica_moved import MUTANT as ANOTHER_REPLICA_MOVED
from nemesis.mutants.asked_epoch_answered import MUTANT as ASKED_EPOCH_ANSWERED
from nemesis.mutants.assignments_answered_early import MUTANT as ASSIGNMENTS_ANSWERED_EARLY
from nemesis.mutants.balance_ends_when_idle import MUTANT as BALANCE_ENDS_WHEN_IDLE
from nemesis.mutants.base import Mutant, MutantError
from nemesis.mutants.bounce_unseen import MUTANT as BOUNCE_UNSEEN
from nemesis.mutants.broker_epoch_kept import MUTANT as BROKER_EPOCH_KEPT
from nemesis.mutants.cancel_keeps_added_replicas import MUTANT as CANCEL_KEEPS_ADDED_REPLICAS
from nemesis.mutants.cleaner_ends_when_idle import MUTANT as CLEANER_ENDS_WHEN_IDLE
from nemesis.mutants.commits_acknowledged_early import MUTANT as COMMITS_ACKNOWLEDGED_EARLY
from nemesis.mutants.commits_unchecked import MUTANT as COMMITS_UNCHECKED
from nemesis.mutants.committed_logs_unsynced import MUTANT as COMMITTED_LOGS_UNSYNCED
from nemesis.mutants.compaction_above_hw import MUTANT as COMPACTION_ABOVE_HW
from nemesis.mutants.control_plane_opens_early import MUTANT as CONTROL_PLANE_OPENS_EARLY
from nemesis.mutants.controller_epoch_not_raised import MUTANT as CONTROLLER_EPOCH_NOT_RAISED
from nemesis.mutants.coordinator_epoch_unchecked import MUTANT as COORDINATOR_EPOCH_UNCHECKED
from nemesis.mutants.damaged_tail_believed import MUTANT as DAMAGED_TAIL_BELIEVED
from nemesis.mutants.dead_leader_elected import MUTANT as DEAD_LEADER_ELECTED
from nemesis.mutants.dead_replicas_count_as_deleted import MUTANT as DEAD_REPLICAS_COUNT_AS_DELETED
from nemesis.mutants.dead_replicas_stay_online import MUTANT as DEAD_REPLICAS_STAY_ONLINE
from nemesis.mutants.decided_transactions_left import MUTANT as DECIDED_TRANSACTIONS_LEFT
from nemesis.mutants.deleted_log_reopened import MUTANT as DELETED_LOG_REOPENED
from nemesis.mutants.deposed_leader_changes_isr import MUTANT as DEPOSED_LEADER_CHANGES_ISR
from nemesis.mutants.diverging_fetch_counted import MUTANT as DIVERGING_FETCH_COUNTED
from nemesis.mutants.empty_epoch_kept import MUTANT as EMPTY_EPOCH_KEPT
from nemesis.mutants.empty_group_begins_again import MUTANT as EMPTY_GROUP_BEGINS_AGAIN
from nemesis.mutants.end_answered_early import MUTANT as END_ANSWERED_EARLY
from nemesis.mutants.epoch_zero_forgotten import MUTANT as EPOCH_ZERO_FORGOTTEN
from nemesis.mutants.epochs_used_up_by_fencing import MUTANT as EPOCHS_USED_UP_BY_FENCING
from nemesis.mutants.error_reported_once import MUTANT as ERROR_REPORTED_ONCE
from nemesis.mutants.fenced_instance_commits import MUTANT as FENCED_INSTANCE_COMMITS
from nemesis.mutants.fetch_wait_in_seconds import MUTANT as FETCH_WAIT_IN_SECONDS
from nemesis.mutants.fetcher_gives_up import MUTANT as FETCHER_GIVES_UP
from nemesis.mutants.fetcher_keeps_leader_epoch import MUTANT as FETCHER_KEEPS_LEADER_EPOCH
from nemesis.mutants.first_loaded_offset_kept import MUTANT as FIRST_LOADED_OFFSET_KEPT
from nemesis.mutants.first_lost_replica_alone import MUTANT as FIRST_LOST_REPLICA_ALONE
from nemesis.mutants.first_unstable_offset_kept import MUTANT as FIRST_UNSTABLE_OFFSET_KEPT
from nemesis.mutants.follower_credited_early import MUTANT as FOLLOWER_CREDITED_EARLY
from nemesis.mutants.follower_hw_at_its_end import MUTANT as FOLLOWER_HW_AT_ITS_END
from nemesis.mutants.follower_keeps_log_start import MUTANT as FOLLOWER_KEEPS_LOG_START
from nemesis.mutants.followers_know_no_producers import MUTANT as FOLLOWERS_KNOW_NO_PRODUCERS
from nemesis.mutants.future_log_swapped_early import MUTANT as FUTURE_LOG_SWAPPED_EARLY
from nemesis.mutants.generation_kept import MUTANT as GENERATION_KEPT
from nemesis.mutants.groups_not_replayed import MUTANT as GROUPS_NOT_REPLAYED
from nemesis.mutants.high_watermark_read_twice import MUTANT as HIGH_WATERMARK_READ_TWICE
from nemesis.mutants.horizon_from_batch import MUTANT as HORIZON_FROM_BATCH
from nemesis.mutants.hw_before_truncation import MUTANT as HW_BEFORE_TRUNCATION
from nemesis.mutants.hw_follows_leader_leo import MUTANT as HW_FOLLOWS_LEADER_LEO
from nemesis.mutants.hw_unbounded import MUTANT as HW_UNBOUNDED
from nemesis.mutants.isr_change_not_remembered import MUTANT as ISR_CHANGE_NOT_REMEMBERED
from nemesis.mutants.isr_committed_quietly import MUTANT as ISR_COMMITTED_QUIETLY
from nemesis.mutants.isr_emptied import MUTANT as ISR_EMPTIED
from nemesis.mutants.isr_member_epoch_unchecked import MUTANT as ISR_MEMBER_EPOCH_UNCHECKED
from nemesis.mutants.isr_written_unconditionally import MUTANT as ISR_WRITTEN_UNCONDITIONALLY
from nemesis.mutants.joining_replica_uncounted import MUTANT as JOINING_REPLICA_UNCOUNTED
from nemesis.mutants.joins_below_epoch_start import MUTANT as JOINS_BELOW_EPOCH_START
from nemesis.mutants.laggards_kept import MUTANT as LAGGARDS_KEPT
from nemesis.mutants.laggards_noticed_late import MUTANT as LAGGARDS_NOTICED_LATE
from nemesis.mutants.large_batch_withheld import MUTANT as LARGE_BATCH_WITHHELD
from nemesis.mutants.last_stable_offset_ignored import MUTANT as LAST_STABLE_OFFSET_IGNORED
from nemesis.mutants.last_time_unindexed import MUTANT as LAST_TIME_UNINDEXED
from nemesis.mutants.late_fence_stops_fetcher import MUTANT as LATE_FENCE_STOPS_FETCHER
from nemesis.mutants.leader_epoch_not_raised import MUTANT as LEADER_EPOCH_NOT_RAISED
from nemesis.mutants.leaders_told_before_brokers import MUTANT as LEADERS_TOLD_BEFORE_BROKERS
from nemesis.mutants.leaving_leader_elected import MUTANT as LEAVING_LEADER_ELECTED
from nemesis.mutants.leaving_replica_uncounted import MUTANT as LEAVING_REPLICA_UNCOUNTED
from nemesis.mutants.loaded_offsets_mixed import MUTANT as LOADED_OFFSETS_MIXED
from nemesis.mutants.log_dir_events_left import MUTANT as LOG_DIR_EVENTS_LEFT
from nemesis.mutants.markers_disagree import MUTANT as MARKERS_DISAGREE
from nemesis.mutants.markers_incomplete import MUTANT as MARKERS_INCOMPLETE
from nemesis.mutants.markers_removed_early import MUTANT as MARKERS_REMOVED_EARLY
from nemesis.mutants.marks_checkpointed_once import MUTANT as MARKS_CHECKPOINTED_ONCE
from nemesis.mutants.marks_checkpointed_too_often import MUTANT as MARKS_CHECKPOINTED_TOO_OFTEN
from nemesis.mutants.member_epochs_omitted import MUTANT as MEMBER_EPOCHS_OMITTED
from nemesis.mutants.metadata_isr_change_ignored import MUTANT as METADATA_ISR_CHANGE_IGNORED
from nemesis.mutants.metadata_with_old_epoch import MUTANT as METADATA_WITH_OLD_EPOCH
from nemesis.mutants.min_isr_forgotten import MUTANT as MIN_ISR_FORGOTTEN
from nemesis.mutants.needless_elections import MUTANT as NEEDLESS_ELECTIONS
from nemesis.mutants.new_epoch_forgotten import MUTANT as NEW_EPOCH_FORGOTTEN
from nemesis.mutants.new_leader_truncates import MUTANT as NEW_LEADER_TRUNCATES
from nemesis.mutants.newer_broker_epoch_refused import MUTANT as NEWER_BROKER_EPOCH_REFUSED
from nemesis.mutants.newest_batch_answered import MUTANT as NEWEST_BATCH_ANSWERED
from nemesis.mutants.next_epoch_refused import MUTANT as NEXT_EPOCH_REFUSED
from nemesis.mutants.no_broker_epoch_check import MUTANT as NO_BROKER_EPOCH_CHECK
from nemesis.mutants.no_controller_epoch_check import MUTANT as NO_CONTROLLER_EPOCH_CHECK
from nemesis.mutants.no_truncation import MUTANT as NO_TRUNCATION
from nemesis.mutants.overdue_transactions_kept import MUTANT as OVERDUE_TRANSACTIONS_KEPT
from nemesis.mutants.preferred_leader_out_of_sync import MUTANT as PREFERRED_LEADER_OUT_OF_SYNC
from nemesis.mutants.producer_epoch_unchecked import MUTANT as PRODUCER_EPOCH_UNCHECKED
from nemesis.mutants.producer_snapshot_ignored import MUTANT as PRODUCER_SNAPSHOT_IGNORED
from nemesis.mutants.producers_survive_truncation import MUTANT as PRODUCERS_SURVIVE_TRUNCATION
from nemesis.mutants.read_above_hw import MUTANT as READ_ABOVE_HW
from nemesis.mutants.read_seam_doubled import MUTANT as READ_SEAM_DOUBLED
from nemesis.mutants.read_seam_lost import MUTANT as READ_SEAM_LOST
from nemesis.mutants.refused_append_kept import MUTANT as REFUSED_APPEND_KEPT
from nemesis.mutants.refused_isr_left_pending import MUTANT as REFUSED_ISR_LEFT_PENDING
from nemesis.mutants.registration_of_a_dead_session import MUTANT as REGISTRATION_OF_A_DEAD_SESSION
from nemesis.mutants.removed_partition_looked_up import MUTANT as REMOVED_PARTITION_LOOKED_UP
from nemesis.mutants.replicas_answered_as_isr import MUTANT as REPLICAS_ANSWERED_AS_ISR
from nemesis.mutants.replicas_die_online import MUTANT as REPLICAS_DIE_ONLINE
from nemesis.mutants.requested_moves_dropped import MUTANT as REQUESTED_MOVES_DROPPED
from nemesis.mutants.resigned_controller_looks_away import (
    MUTANT as RESIGNED_CONTROLLER_LOOKS_AWAY,
)
from nemesis.mutants.resigns_from_own_office import MUTANT as RESIGNS_FROM_OWN_OFFICE
from nemesis.mutants.retention_above_hw import MUTANT as RETENTION_ABOVE_HW
from nemesis.mutants.retention_ends_at_first_idle_log import (
    MUTANT as RETENTION_ENDS_AT_FIRST_IDLE_LOG,
)
from nemesis.mutants.segments_overflow import MUTANT as SEGMENTS_OVERFLOW
from nemesis.mutants.session_expiry_ignored import MUTANT as SESSION_EXPIRY_IGNORED
from nemesis.mutants.session_keeps_forgotten import MUTANT as SESSION_KEEPS_FORGOTTEN
from nemesis.mutants.session_keeps_high_watermark import MUTANT as SESSION_KEEPS_HIGH_WATERMARK
from nemesis.mutants.settings_read_once import MUTANT as SETTINGS_READ_ONCE
from nemesis.mutants.stale_epochs_answered import MUTANT as STALE_EPOCHS_ANSWERED
from nemesis.mutants.static_member_doubled import MUTANT as STATIC_MEMBER_DOUBLED
from nemesis.mutants.static_member_unstored import MUTANT as STATIC_MEMBER_UNSTORED
from nemesis.mutants.truncate_to_hw import MUTANT as TRUNCATE_TO_HW
from nemesis.mutants.unclean_election_unasked import MUTANT as UNCLEAN_ELECTION_UNASKED
from nemesis.mutants.unfenced_controller_writes import MUTANT as UNFENCED_CONTROLLER_WRITES
from nemesis.mutants.waiting_joins_left import MUTANT as WAITING_JOINS_LEFT
from nemesis.registry import Registry, by_name

__all__ = ["MUTANTS", "Mutant", "MutantError"]

MUTANTS: Final[Registry[Mutant]] = Registry(
    "mutant",
    by_name(
        (
            NO_CONTROLLER_EPOCH_CHECK,
            UNFENCED_CONTROLLER_WRITES,
            CONTROLLER_EPOCH_NOT_RAISED,
            NO_BROKER_EPOCH_CHECK,
            CONTROL_PLANE_OPENS_EARLY,
            BROKER_EPOCH_KEPT,
            BOUNCE_UNSEEN,
            REGISTRATION_OF_A_DEAD_SESSION,
            LEADERS_TOLD_BEFORE_BROKERS,
            LEADER_EPOCH_NOT_RAISED,
            DEAD_LEADER_ELECTED,
            UNCLEAN_ELECTION_UNASKED,
            LEAVING_LEADER_ELECTED,
            PREFERRED_LEADER_OUT_OF_SYNC,
            DEAD_REPLICAS_COUNT_AS_DELETED,
            CANCEL_KEEPS_ADDED_REPLICAS,
            REQUESTED_MOVES_DROPPED,
            ISR_EMPTIED,
            REPLICAS_DIE_ONLINE,
            ISR_MEMBER_EPOCH_UNCHECKED,
            DEPOSED_LEADER_CHANGES_ISR,
            REFUSED_ISR_LEFT_PENDING,
            ISR_WRITTEN_UNCONDITIONALLY,
            LAGGARDS_KEPT,
            LAGGARDS_NOTICED_LATE,
            HW_FOLLOWS_LEADER_LEO,
            ACKNOWLEDGE_BEFORE_REPLICATION,
            READ_ABOVE_HW,
            REFUSED_APPEND_KEPT,
            READ_SEAM_LOST,
            READ_SEAM_DOUBLED,
            FOLLOWER_HW_AT_ITS_END,
            LEAVING_REPLICA_UNCOUNTED,
            EPOCH_ZERO_FORGOTTEN,
            DAMAGED_TAIL_BELIEVED,
            DELETED_LOG_REOPENED,
            JOINING_REPLICA_UNCOUNTED,
            TRUNCATE_TO_HW,
            FOLLOWER_CREDITED_EARLY,
            FETCHER_KEEPS_LEADER_EPOCH,
            FETCHER_GIVES_UP,
            NO_TRUNCATION,
            LATE_FENCE_STOPS_FETCHER,
            REMOVED_PARTITION_LOOKED_UP,
            EMPTY_EPOCH_KEPT,
            COMPACTION_ABOVE_HW,
            FOLLOWERS_KNOW_NO_PRODUCERS,
            PRODUCER_SNAPSHOT_IGNORED,
            FUTURE_LOG_SWAPPED_EARLY,
            METADATA_WITH_OLD_EPOCH,
            METADATA_ISR_CHANGE_IGNORED,
            HW_UNBOUNDED,
            NEW_LEADER_TRUNCATES,
            DEAD_REPLICAS_STAY_ONLINE,
            RESIGNS_FROM_OWN_OFFICE,
            NEEDLESS_ELECTIONS,
            FETCH_WAIT_IN_SECONDS,
            MIN_ISR_FORGOTTEN,
            JOINS_BELOW_EPOCH_START,
            END_ANSWERED_EARLY,
            LARGE_BATCH_WITHHELD,
            SETTINGS_READ_ONCE,
            LOG_DIR_EVENTS_LEFT,
            SESSION_KEEPS_FORGOTTEN,
            ERROR_REPORTED_ONCE,
            SESSION_KEEPS_HIGH_WATERMARK,
            FOLLOWER_KEEPS_LOG_START,
            BALANCE_ENDS_WHEN_IDLE,
            FIRST_LOST_REPLICA_ALONE,
            RETENTION_ENDS_AT_FIRST_IDLE_LOG,
            NEWER_BROKER_EPOCH_REFUSED,
            PRODUCERS_SURVIVE_TRUNCATION,
            RESIGNED_CONTROLLER_LOOKS_AWAY,
            RETENTION_ABOVE_HW,
            HW_BEFORE_TRUNCATION,
            DIVERGING_FETCH_COUNTED,
            MEMBER_EPOCHS_OMITTED,
            COMMITTED_LOGS_UNSYNCED,
            ASKED_EPOCH_ANSWERED,
            STALE_EPOCHS_ANSWERED,
            LAST_TIME_UNINDEXED,
            SEGMENTS_OVERFLOW,
            CLEANER_ENDS_WHEN_IDLE,
            MARKS_CHECKPOINTED_ONCE,
            MARKS_CHECKPOINTED_TOO_OFTEN,
            REPLICAS_ANSWERED_AS_ISR,
            ISR_CHANGE_NOT_REMEMBERED,
            ISR_COMMITTED_QUIETLY,
            ANOTHER_REPLICA_MOVED,
            AGE_IN_OTHER_UNITS,
            NEWEST_BATCH_ANSWERED,
            GENERATION_KEPT,
            GROUPS_NOT_REPLAYED,
            COMMITS_UNCHECKED,
            COMMITS_ACKNOWLEDGED_EARLY,
            LOADED_OFFSETS_MIXED,
            SESSION_EXPIRY_IGNORED,
            WAITING_JOINS_LEFT,
            FIRST_LOADED_OFFSET_KEPT,
            FENCED_INSTANCE_COMMITS,
            STATIC_MEMBER_UNSTORED,
            STATIC_MEMBER_DOUBLED,
            EMPTY_GROUP_BEGINS_AGAIN,
            ASSIGNMENTS_ANSWERED_EARLY,
            ABORTED_TRANSACTIONS_UNNAMED,
            LAST_STABLE_OFFSET_IGNORED,
            MARKERS_DISAGREE,
            PRODUCER_EPOCH_UNCHECKED,
            MARKERS_INCOMPLETE,
            MARKERS_REMOVED_EARLY,
            HORIZON_FROM_BATCH,
            COORDINATOR_EPOCH_UNCHECKED,
            DECIDED_TRANSACTIONS_LEFT,
            OVERDUE_TRANSACTIONS_KEPT,
            FIRST_UNSTABLE_OFFSET_KEPT,
            NEW_EPOCH_FORGOTTEN,
            NEXT_EPOCH_REFUSED,
            ADDED_PARTITIONS_FORGOTTEN,
            EPOCHS_USED_UP_BY_FENCING,
            HIGH_WATERMARK_READ_TWICE,
            ABORTED_OFFSETS_COMMITTED,
        )
    ),
)
"""Every mutant by its name: of controllers' terms, of brokers' lives, of elections, of topics, of ISRs, of logs, of
producers, of groups, of transactions."""
