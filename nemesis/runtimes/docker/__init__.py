"""A cluster of containers: addresses of their own, partitions that really lose packets.

* ``runtime``       ``DockerRuntime``: composes the parts (start here)
* ``nodes``         names, addresses, containers and packet rules, on which the parts act
* ``network``, ``processes``, ``broker_disks``, ``ensemble``   one part each; ``lifecycle`` starts and stops
* ``cluster``       all that a run has at the engine: made, stopped, brought home, removed
* ``addresses``, ``bridge``   a subnet and a bridge of its own; which node has which address
* ``creation``      containers from the run's compose file
* ``container_node``  one container: start, kill, pause, resume, end; each measured
* ``packets``       the rules that drop, delay, duplicate and reorder packets
* ``disks``         an ext4 of its own for each broker's logs
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
