"""Where a cluster runs. ``nemesis.interfaces`` has the parts that faults and the run see.

* ``local``       processes of this machine behind a proxy (the default)
* ``docker``      containers with addresses and disks of their own
* ``simulation``  everything in one process on virtual time
* ``kinds``       the registry of runtimes; open it first
* ``real_cluster``  what clusters of real processes share: names, addresses, probes of nodes
* ``metadata_logs``  the logs of a KRaft quorum's voters, copied into the record of a run
* ``last_words``     what a process printed last, and whether a broker refused its configuration
* ``membership``  which brokers belong to a cluster, as brokers join and leave
* ``config``      what a cluster is to be like, on each of them
* ``clock_control``  wall clocks of single nodes, moved by a preloaded library
* ``disk_control``   disks of brokers on one machine: full, failing or without power, without root
* ``reference_launcher``  starts one broker of the reference, with a planted bug if asked
* ``kafka_launcher``  starts one broker of Apache Kafka; ``kafka_class_archiver``   lets it start faster
* ``probes``      whether a node answers; ``kazoo_admin``, ``session_takeover``   the harness at ZooKeeper
"""
