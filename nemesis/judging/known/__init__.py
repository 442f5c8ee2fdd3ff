"""Behaviour of Kafka that breaks a property and is known, with a reference: reported, but apart from new findings.

* ``behaviour``         what an entry of the list is, and what a run shows that tells it from a new finding
* ``last_replica``      KIP-966: the last replica of an ISR loses what it had not synced
* ``lost_leader_and_isr``   a suspected bug of 3.9.1: a session ends while a log is created
* ``marking``           the list, and how an outcome is marked by it (start here)
"""
