"""What clients see of a partition's log: the queue anomalies.

Judged from send and poll operations, so they also hold for a system that emits no traces. ``lives`` tells the lives of
a topic apart, ``operations`` gathers one partition's operations, ``writes`` and ``polls`` hold one pure function per
anomaly, ``client_log`` is the check.
The definitions are at the head of ``client_log``.
"""

from checkers.log.client_log import ClientLog

__all__ = ["ClientLog"]
