"""Apache Kafka in ZooKeeper mode as a target, from the jars of its releases.

* ``target``        what a run needs to know of it; open it first
* ``releases``      what differs between releases, as one table
* ``properties``    a scenario's broker properties, translated for a release
* ``pages``         the tables of ``docs/kafka.md``
* ``maven``         the jars of a release, downloaded by Maven
* ``installation``  the jars on this machine: in the cache, with their checksums, or in a Kafka home directory
* ``stored_classes``  the classes of a broker in the cache, so that brokers start faster
"""
