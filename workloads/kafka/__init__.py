"""A Kafka client for workloads: one attempt per operation, and the truth about its outcome.

* ``client``        KafkaClient: metadata, send, poll (start here)
* ``admin``         KafkaAdmin: topics, reassignments, elections, log directories
* ``queries``       offsets, metadata and epoch ends, asked of any broker
* ``idempotent_producer``   IdempotentProducer: sends a batch again until its fate is known
* ``fetches``       fetch requests of several partitions, and fetch sessions
* ``connection``    one TCP connection bound to its source address; ``frames`` one frame out, one in
* ``codec``         frames to messages and back, by kio
* ``record_batch``  building and reading record batches of format v2
* ``compression``   the codecs of record batches
* ``errors``        what a failed operation says: certain or unknown

Ordinary clients retry behind the caller's back and blur what is known; a checker needs to know exactly what was tried.
"""
