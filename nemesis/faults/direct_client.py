"""A client of the harness at one broker, past every link rule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from nemesis.interfaces.cluster import Cluster
from nemesis.workloads.kafka.client import KafkaClient


@contextmanager
def direct_client(
    cluster: Cluster, node: str, *, client_id: str, rng: Random, listener: str | None = None
) -> Iterator[tuple[KafkaClient, tuple[str, int]]]:
    """Yield a client that knows this node alone, and the node's address; the client is closed afterwards.

    ``listener`` is a name with a listener of its own at the node, such as the node's controller.
    """
    address = cluster.direct_address(node if listener is None else listener)
    server = (address.host, address.port)
    client = KafkaClient(
        [server],
        client_id=client_id,
        source_host=cluster.direct_source(node),
        rng=Random(rng.getrandbits(64)),
        codec=cluster.codec,
    )
    try:
        yield client, server
    finally:
        client.close()
