"""How long the cluster was without what its users need: as numbers, and as findings where no fault explains it.

* ``check``     the definitions of the numbers and their check: start here
* ``late_recovery``    partitions that stay unavailable with no fault in force for longer than the time-outs allow
* ``recovery_bound``   how long that is
* ``cluster``   stretches without controller, leader, full ISR, from ZooKeeper's order and brokers' traces
* ``produce``   stretches in which produce was tried and nothing acknowledged, from clients' operations
* ``time_spans``     unions, complements, intersections of spans of time
* ``attribution``    which kind of fault a stretch is put down to, and the distributions
"""

from nemesis.checkers.liveness.check import Liveness

__all__ = ["Liveness"]
