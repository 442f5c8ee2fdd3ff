"""A Kafka client for workloads: one attempt per operation, and the truth about its outcome.

* ``client``        KafkaClient: metadata, send, poll (start here)
* ``admin``         KafkaAdmin: topics, reassignments, elections, log directories
* ``queries``       offsets, metadata and epoch ends, asked of any broker
* ``quorum``        which KRaft controller is active, and what is being reassigned
* ``replica_offsets``   where the logs of single replicas start and end, and their high watermarks
* ``idempotent_producer``   IdempotentProducer: sends a batch again until its fate is known
* ``consumer_coordinator``  ConsumerCoordinator: one member of a group; ``group_requests`` and
  ``group_offset_requests`` its requests, ``consumer_protocol`` what members tell each other, ``assignors`` who is to
  own which partition
* ``transactional_producer``  TransactionalProducer: one transaction at a time; ``transaction_requests`` its requests,
  ``implicit_transactions`` those of later Kafka
* ``committed_records``     what a fetch of committed records returns
* ``open_transactions``     which transaction holds the last stable offset
* ``cluster_metadata``      what one broker knew of the cluster
* ``produces``      produce requests of several partitions, and their answers
* ``fetches``       fetch requests of several partitions, and fetch sessions; ``poll_answers`` reads what they return
* ``offset_requests``       ListOffsets requests of one partition, and their answers
* ``timeouts``      time-outs as requests state them
* ``connections``   the connections of one client process
* ``connection``    one TCP connection bound to its source address; ``frames`` one frame out, one in
* ``codec``         frames to messages and back, by kio
* ``record_batch``  building and reading record batches of format v2
* ``compression``   the codecs of record batches
* ``errors``        what a failed operation says: certain or unknown

Ordinary clients retry behind the caller's back and blur what is known; a checker needs to know exactly what was tried.
"""
