"""How long the cluster was without what its users need, as numbers: reported, and held against nobody.

* ``check``     the definitions and the check: start here
* ``cluster``   stretches without controller, leader, full ISR, from ZooKeeper's order and brokers' traces
* ``produce``   stretches in which produce was tried and nothing acknowledged, from clients' operations
* ``time_spans``     unions, complements, intersections of spans of time
* ``attribution``    which kind of fault a stretch is put down to, and the distributions
"""

from nemesis.checkers.liveness.check import Liveness

__all__ = ["Liveness"]
