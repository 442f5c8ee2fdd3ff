"""Consumer groups: open ``group_coordinator`` first.

* ``group_coordinator``   every request about groups, and the changes of role of the offsets partitions
* ``group_joins``, ``group_syncs``   JoinGroup and SyncGroup, member by member
* ``rebalances``, ``heartbeats``   what waits: for members to join, for their assignments, for signs of life;
  ``delayed_rebalances``, ``delayed_heartbeat`` in the purgatory
* ``group_metadata``, ``member_metadata``, ``group_states``   a group, its members, its states
* ``group_offsets``, ``offset_commits``   the committed offsets of a group; OffsetCommit and OffsetFetch
* ``group_metadata_manager``   the groups of this broker, by offsets partition, and what is written to the log
* ``group_loading``   groups and offsets as a log has them
* ``group_records``   the format of the records
* ``watching``   waits in a purgatory
* ``group_results``   answers; ``group_errors`` how the errors of an append become them
"""
