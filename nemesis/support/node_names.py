"""What the nodes of a cluster are called: ``broker-1`` and so on, numbered from 1.

The id of ``broker-N`` is N. A KRaft controller that is a node of its own, ``controller-N``, has an id above those of
all brokers: ids of nodes differ, in all roles.
"""

from __future__ import annotations

from typing import Final

from nemesis.support.errors import UsageError

BROKER: Final = "broker-"
CONTROLLER: Final = "controller-"
CONTROLLER_IDS: Final = 1000
"""The id of ``controller-N`` is N above this."""


def node_of(number: int) -> str:
    """Return the name of the node with this id."""
    if number > CONTROLLER_IDS:
        return f"{CONTROLLER}{number - CONTROLLER_IDS}"
    return f"{BROKER}{number}"


def id_of(node: str) -> int:
    """Return the id of a node ``broker-N`` or ``controller-N``."""
    if is_controller(node):
        return CONTROLLER_IDS + int(node.removeprefix(CONTROLLER))
    return int(node.removeprefix(BROKER))


def is_controller(node: str) -> bool:
    """Return whether the node is a KRaft controller and not a broker."""
    return node.startswith(CONTROLLER)


def node_names(role: str, count: int, *, limit: int) -> list[str]:
    """Return the names of so many nodes; raises ``UsageError`` when the count is not positive or over the limit."""
    if not 1 <= count <= limit:
        raise UsageError(f"{count} {role}s are not possible: allowed are 1 to {limit}")
    return [f"{role}-{number}" for number in range(1, count + 1)]
