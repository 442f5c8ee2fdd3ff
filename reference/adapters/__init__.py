"""The world outside a broker, as ``nemesis.reference.ports`` describes it: ``disk``, ``zookeeper`` (kazoo), ``clock``.

The only modules of the reference that may use files, threads and clocks themselves.
"""
