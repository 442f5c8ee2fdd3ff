"""ZooKeeper as Kafka uses it: ``zk_data`` says what the znodes hold, ``kafka_zk_client`` reads and writes them.

``errors`` is the tree of what can go wrong. Open ``kafka_zk_client`` first.
"""
