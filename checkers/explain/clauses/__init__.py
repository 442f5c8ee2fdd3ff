"""A clause for each kind of event that can prove something, one small function each, by who recorded it.

* ``zookeeper``      writes to ZooKeeper, or to the metadata log
* ``controllers``, ``replicas``, ``transactions``   traces of brokers
* ``stored``         the files of brokers
* ``clients``, ``harness``   operations, and what nemesis itself did and saw
* ``subjects``       whom and what they are about
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses import (
    clients,
    controllers,
    harness,
    replicas,
    stored,
    transactions,
    zookeeper,
)
from nemesis.history.events import Event

CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        kind: clause
        for module in (zookeeper, controllers, replicas, transactions, stored, clients, harness)
        for kind, clause in module.CLAUSES.items()
    }
)
"""By kind."""
