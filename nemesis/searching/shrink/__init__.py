"""Shrinking: from a run that shows a finding to the smallest run that still shows it.

* ``signature``   when a smaller run shows the same finding
* ``ddmin``       the two searches: fewest items, lowest number; pure
* ``trials``      candidates are tried: the budget, the workers, the best so far
* ``passes``      what is made smaller, in this order: faults, client operations, time, deviations of the schedule
* ``stored``      the smaller run in the store, with the run that it comes from
* ``shrinker``    the passes until nothing gets smaller (start here)

A candidate is a ``SimulationSpec``; it counts when its run, simulated and checked as any other, has a finding of the
same signature. What is found is a run like any other: it has a plan, a report, and replays.
"""

from __future__ import annotations

from nemesis.searching.shrink.shrinker import Shrunk, shrink
from nemesis.searching.shrink.signature import Signature
from nemesis.searching.shrink.trials import Budget, Size

__all__ = ["Budget", "Shrunk", "Signature", "Size", "shrink"]
