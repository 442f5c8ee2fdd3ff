"""Transactions of producers in our own runs: what readers of committed records are given, and who is fenced.

* ``check``       the check, and its properties with their specifications (start here)
* ``produced``    transactions, their records and ends, and the producers of transactional ids, from the events
* ``reads``, ``fencing``   the judges; ``losses``: whether what they find is allowed
"""
