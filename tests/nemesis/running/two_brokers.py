"""Two brokers of which only names and addresses are used."""

from __future__ import annotations

from nemesis.workloads.kafka import codec as wire_format


class Address:
    host, port = "127.0.0.1", 1


class TwoBrokers:
    """A runtime of which only names and addresses are used."""

    brokers = ("broker-1", "broker-2")
    codec = wire_format

    @property
    def cluster(self) -> TwoBrokers:
        return self

    def direct_address(self, node: str) -> Address:
        del node
        return Address()

    def direct_source(self, node: str) -> str:
        del node
        return "127.0.0.1"
