"""Where a cluster runs. ``base`` is the interface that faults and the run see.

* ``local``       processes of this machine behind a proxy (the default)
* ``docker``      containers with addresses and disks of their own
* ``simulation``  everything in one process on virtual time
* ``membership``  who belongs to a cluster, as brokers join and leave
* ``config``      what a cluster is to be like, on each of them
* ``clock_control``  wall clocks of single nodes, moved by a preloaded library
* ``impairment``, ``probes``, ``frame_scanner``, ``node_names``   what they share
"""
