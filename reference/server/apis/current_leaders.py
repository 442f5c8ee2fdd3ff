"""What an answer of Produce or Fetch says of the partition's current leader and where it is (KIP-951)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final

from nemesis.reference.protocol.schema import build_items, field_names, item_class
from nemesis.reference.server.metadata_cache import MetadataCache

_NO_LEADER: Final = frozenset({-1})


def node_endpoints(
    response: type[Any],
    leaders: AbstractSet[int],
    metadata_cache: MetadataCache,
    listener_name: str,
) -> dict[str, Any]:
    """Where the current leaders (−1 is none) are by the listener that was asked; nothing for versions that cannot say
    it."""
    if leaders <= _NO_LEADER or "node_endpoints" not in field_names(response):
        return {}
    brokers = [
        metadata_cache.alive_broker_node(leader, listener_name) for leader in sorted(leaders)
    ]
    end_points = build_items(
        response,
        "node_endpoints",
        (
            {"node_id": b.id, "host": b.host, "port": b.port, "rack": b.rack}
            for b in brokers
            if b is not None
        ),
    )
    return {"node_endpoints": end_points}


def current_leader(partition_class: type[Any], leader: int, leader_epoch: int) -> dict[str, Any]:
    """Whom the sender should turn to; nothing in versions that cannot say it."""
    if "current_leader" not in partition_class.__dataclass_fields__:
        return {}
    leader_class = item_class(partition_class, "current_leader")
    return {"current_leader": leader_class(leader_id=leader, leader_epoch=leader_epoch)}
