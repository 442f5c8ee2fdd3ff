"""The runtime ``simulation``: the whole cluster in this process, on virtual time.

* ``runtime``   ``SimulationRuntime``: composes the parts; start here
* ``machines``  nodes, disks, clocks and the network of the cluster, on which the parts act
* ``network``, ``processes``, ``disks``, ``clocks``, ``ensemble``   one part each; ``lifecycle`` starts and stops
* ``traces``    what brokers trace, at the instant of the event
* ``addresses``  made-up addresses of brokers, ZooKeeper, clients and the harness
* ``config``    what the cluster is made from
* ``broker``    one incarnation of a reference broker: the same code as everywhere, on simulated ports

What simulates loop, network, disk, clock and ZooKeeper is ``nemesis.simulation``.
"""

from nemesis.runtimes.simulation.config import SimulationRuntimeConfig
from nemesis.runtimes.simulation.runtime import SimulationRuntime

__all__ = ["SimulationRuntime", "SimulationRuntimeConfig"]
