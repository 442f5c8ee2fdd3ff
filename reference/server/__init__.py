"""The broker as a server: open ``kafka_server`` first, then ``kafka_apis`` and ``replica_manager``."""
