"""The runtime ``simulation``: the whole cluster in this process, on virtual time.

* ``runtime``  the ``Runtime`` that a run and its faults see: nodes, links, disks and clocks of a ``World``; start here
* ``broker``   one life of a reference broker: the same code as everywhere, on simulated ports

What simulates loop, network, disk, clock and ZooKeeper is ``nemesis.simulation``.
"""

from nemesis.runtimes.simulation.runtime import SimulationRuntime, SimulationRuntimeConfig

__all__ = ["SimulationRuntime", "SimulationRuntimeConfig"]
