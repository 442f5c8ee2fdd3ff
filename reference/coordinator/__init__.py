"""Coordinators: what a broker does for clients that work together.

* ``group``   the consumer groups
* ``transaction``   the transactions of producers
* ``coordinated_partitions``   the partitions of its topic that a coordinator has: elections, loading, appends
* ``coordinator_logs``   the port to their logs
* ``key_partitions``   which partition has a key; ``record_fields`` the fields of the records
"""
