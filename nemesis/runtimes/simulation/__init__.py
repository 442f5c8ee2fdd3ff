"""The runtime ``simulation``: the whole cluster in this process, on virtual time.

* ``runtime``  the ``Runtime`` that a run and its faults see: nodes, links, disks and clocks of a ``World``; start here
* ``config``   what the cluster is made from
* ``broker``   one incarnation of a reference broker: the same code as everywhere, on simulated ports

What simulates loop, network, disk, clock and ZooKeeper is ``nemesis.simulation``.
"""

from nemesis.runtimes.simulation.config import SimulationRuntimeConfig
from nemesis.runtimes.simulation.runtime import SimulationRuntime

__all__ = ["SimulationRuntime", "SimulationRuntimeConfig"]
