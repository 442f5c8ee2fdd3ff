"""How long the cluster was without what its users need: as numbers, and as findings where no fault explains it.

* ``check``     the definitions of the numbers and their check: start here
* ``late_recovery``    partitions that stay unavailable with no fault in force for longer than the time-outs allow
* ``notifications``    what the controller is notified of in ZooKeeper, and does not handle
* ``leader_balance``   brokers that lead too few of the partitions that prefer them
* ``preferred_leaders``, ``terms``   which partitions wait for their preferred leader, and in whose term
* ``vacancies``        no broker becomes controller, though ``candidates`` could
* ``candidates``       brokers that live, are registered and connected to ZooKeeper
* ``log_dir_failures``   log directories that failed, and what still depends on them
* ``log_dir_moves``   replicas that do not move to the directory that an administrator named
* ``lost_replicas``   which replicas a broker lost with a directory
* ``left_logs``   the logs that living brokers leave, and since when each was what it is
* ``retention``, ``compaction``, ``checkpoints``   segments that are not deleted, logs that are not compacted,
  checkpoints that are too old
* ``jobs``           recurring work of brokers that begins too early or too late
* ``requests_answered``  requests of clients that brokers leave without an answer
* ``isr_shrinks``      members of an ISR that lag and are kept
* ``isr_commits``      leaders whose high watermark does not follow a new ISR
* ``isr_watches``, ``log_ends``   when a leader could propose to remove them; how far the logs reached
* ``settings_in_force``  topics whose changed settings brokers do not follow
* ``offsets_at_rest``  replicas that do not agree on their offsets though nothing happens
* ``rest_bound``       how soon they agree
* ``recovery_bound``   how long an unavailability may last
* ``unexplained``      windows in which no fault is in force, and what the machine may have added to them
* ``client_faults``    which clients were killed or paused, and therefore measured no time
* ``cluster``   stretches without controller, leader, full ISR, from ZooKeeper's order and brokers' traces
* ``produce``   stretches in which produce was tried and nothing acknowledged, from clients' operations
* ``time_spans``     unions, complements, intersections of spans of time
* ``attribution``    which kind of fault a stretch is put down to, and the distributions
"""
