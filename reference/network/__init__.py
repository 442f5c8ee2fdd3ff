"""The broker's network: sockets, frames, queues. Open ``socket_server`` first.

* ``socket_server``      the listeners, and how the rest hangs together
* ``acceptor``           accepts a listener's connections, as far as the ``connection_quotas`` let it (``rate``)
* ``processor``          moves requests and responses of its connections in seven steps
* ``selector``           its connections (``kafka_channel``), and what the event loop has told of them
* ``request_channel``    the bounded queue to the handlers, and the five kinds of response; ``memory_pool`` bounds bytes
* ``network_client``     the broker's own connections to other brokers
* ``channel_mute``       whether requests are read from a connection
* ``errors``             what can go wrong with connections
* ``frames``             bytes to frames, for both ends
"""
