"""The requests that a broker answers, by group.

* ``produce``        Produce; ``current_leaders``   what it and Fetch say of who leads now
* ``fetch``          Fetch
* ``offsets``        ListOffsets, OffsetForLeaderEpoch
* ``metadata``       ApiVersions, Metadata, DescribeCluster
* ``coordinators``   FindCoordinator
* ``groups``         JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups
* ``group_offsets``  OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete
* ``control``        LeaderAndIsr, StopReplica, UpdateMetadata: what the controller tells
* ``alter_partitions``   AlterPartition
* ``producers``      InitProducerId; ``producer_id_blocks``   AllocateProducerIds
* ``transaction_coordination``   AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, ListTransactions, DescribeTransactions
* ``transactions``   WriteTxnMarkers, DescribeProducers
* ``records``        DeleteRecords
* ``topics``         CreateTopics, DeleteTopics, CreatePartitions
* ``configs``        DescribeConfigs, AlterConfigs, IncrementalAlterConfigs
* ``elections``      ElectLeaders, ControlledShutdown
* ``reassignments``  AlterPartitionReassignments, ListPartitionReassignments
* ``log_dirs``       DescribeLogDirs, AlterReplicaLogDirs

Each translates kio messages of all offered versions to the values of ``nemesis.reference.model`` and back
(``conversion`` has what they share); ``nemesis.reference.server.kafka_apis`` dispatches to them.
"""
