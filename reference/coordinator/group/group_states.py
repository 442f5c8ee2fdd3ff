"""The states of a group, and from which each may be reached.

::

    Empty ──first member──▶ PreparingRebalance ──all joined, or time-out──▶ CompletingRebalance
      ▲                        │        ▲                                        │ leader's assignment
      └─────no member left─────┘        └──────a member comes, goes, fails───────┴───▶ Stable

Every state leads to Dead: the group was deleted, or another broker coordinates it.
Source: kafka.coordinator.group.GroupState of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """The values are Kafka's names, as ListGroups and DescribeGroups report them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
