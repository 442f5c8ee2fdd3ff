"""A cluster of containers: addresses of their own, partitions that really lose packets.

* ``runtime``       ``DockerRuntime``: the interface of ``runtimes.base`` (start here)
* ``cluster``       all that a run has at the engine: made, stopped, brought home, removed
* ``addresses``, ``network``   a subnet and a bridge of its own; which node has which address
* ``creation``      containers from the run's compose file
* ``container_node``  one container: start, kill, pause, resume, end; each measured
* ``packet_faults``  what the runtime does to packets; the room ``packets`` does it
* ``disks``         an ext4 of its own for each broker's logs; ``disk_faults`` what befalls it
* ``zookeeper_members``  what each member of the ensemble says of itself
* ``collect``       brings home what the containers recorded
* ``labels``, ``leftovers``   whose a thing at the engine is, and how everything of a run is removed
* ``fragments``     what a killed build has left
* ``machine``       what this machine's kernel can do
* ``engine_calls``  calls to the engine from the event loop
* ``engine``        the way to the Docker engine, or one sentence that says why there is none
* ``image``         the image of a node, built when what goes into it has changed
* ``ingredients``   what goes into it: the brokers' code, ZooKeeper's jars, and
* ``packages``      what the brokers import
* ``base_image``    what it is built on, with a registry and without
* ``compose_file``  the file that describes a run's cluster, for the runtime and for a person
"""
