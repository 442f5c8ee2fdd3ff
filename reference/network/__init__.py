"""The broker's network: sockets, frames, queues. Open ``socket_server`` first.

* ``socket_server``    accepts connections, takes requests, writes responses; one request in flight per connection
* ``request_channel``  the bounded queues between connections and handlers; control requests have their own
* ``network_client``   the broker's own connections to other brokers
* ``frames``           bytes to frames, for both ends
"""
