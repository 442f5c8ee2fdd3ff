"""A cluster of containers: addresses of their own, partitions that really lose packets.

* ``engine``        the way to the Docker engine, or one sentence that says why there is none
* ``image``         the image of a node, built when what goes into it has changed
* ``ingredients``   what goes into it: the brokers' code, ZooKeeper's jars, and
* ``packages``      what the brokers import
* ``base_image``    what it is built on, with a registry and without
* ``compose_file``  the file that describes a run's cluster, for the runtime and for a person
"""
