"""The reference cluster: a readable, correct Kafka broker and ZooKeeper-era controller.

One process per broker; every broker hosts a controller candidate. Names are Kafka's own, in snake_case.
Open ``server/kafka_server.py`` first: it builds every component and hands it what it needs.

* ``server``      KafkaServer, KafkaApis, ReplicaManager, fetchers, MetadataCache
* ``controller``  KafkaController, ControllerContext, state machines, channel manager, elections
* ``coordinator``  the group coordinator: members, generations, committed offsets
* ``cluster``     Partition: leader, followers, ISR, high watermark
* ``log``         segments, epoch cache, checkpoints, recovery
* ``network``     SocketServer, RequestChannel, the brokers' own client
* ``zk``          znodes and KafkaZkClient
* ``protocol``    Kafka's wire format (kio) and the header of a record batch
* ``adapters``    the world: real disk, ZooKeeper through kazoo
* ``ports``       what a broker wants of the world; ``trace`` what it tells about itself
* ``delayed_operations``   answers that wait: Kafka's purgatory
* ``kafka_scheduler``   work that comes in time; the controller has a scheduler of its own, as in Kafka
* ``exception_trace``   unforeseen exceptions as events of the trace
* ``kafka_config``, ``kafka_log_config``, ``kafka_group_config``, ``kafka_transaction_config``,
  ``listeners``   a broker's settings
* ``model``       values that all parts share

It imports of ours only ``history``'s trace vocabulary. Bugs to be found are not here but in ``nemesis/mutants``.
"""
