"""A cluster of processes on this machine: no root, no containers, one lease of 127.x.y.0/24 per run.

* ``runtime``           ``LocalRuntime``: composes the parts (start here)
* ``nodes``             names, addresses and processes of the cluster, on which the parts act
* ``network``, ``processes``, ``disks``, ``ensemble``   one part each; ``lifecycle`` starts and stops
* ``traces``            what brokers trace, read while they run
* ``addresses``         the lease, and which node gets which address and port
* ``node_process``      one operating-system process: start, kill, pause, resume, end; each measured
* ``zookeeper_server``  the real ZooKeeper from the jars that PySpark ships
* ``broker_process``    a broker of the chosen target
* ``links``             the harness's handle on the proxy process
* ``proxy``, ``flow``, ``link_table``  the proxy: its sockets, one direction of a connection, the rules;
                        ``python -m nemesis.runtimes.local`` runs it
"""

from nemesis.runtimes.local.runtime import LocalRuntime

__all__ = ["LocalRuntime"]
