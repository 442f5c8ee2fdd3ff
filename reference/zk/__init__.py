"""ZooKeeper as Kafka uses it: ``zk_data`` says what the znodes hold, ``kafka_zk_client`` reads and writes them.

Its parts are one module for each kind of znode; ``zookeeper_session`` retries, ``fenced_writes`` fences for controllers
and ``replication_utils`` compares and sets for leaders, ``pipelining`` does many things at once, and ``errors`` is the
tree of what can go wrong. Open ``kafka_zk_client`` first.
"""
