"""The controller's state machines: which state of a partition or replica may follow which.

Source: PartitionStateMachine and ReplicaStateMachine (validPreviousStates).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PREVIOUS_STATES: Final[Mapping[str, Mapping[str, frozenset[str]]]] = MappingProxyType(
    {
        "partition": {
            "NonExistent": frozenset({"Offline"}),
            "New": frozenset({"NonExistent"}),
            "Online": frozenset({"New", "Online", "Offline"}),
            "Offline": frozenset({"New", "Online", "Offline"}),
        },
        "replica": {
            "NonExistent": frozenset({"DeletionSuccessful"}),
            "New": frozenset({"NonExistent"}),
            "Online": frozenset({"New", "Online", "Offline", "DeletionIneligible"}),
            "Offline": frozenset({"New", "Online", "Offline", "DeletionIneligible"}),
            "DeletionStarted": frozenset({"Offline"}),
            "DeletionSuccessful": frozenset({"DeletionStarted"}),
            "DeletionIneligible": frozenset({"Offline", "DeletionStarted"}),
        },
    }
)
"""Machine → state → the states from which it may be reached."""

FIRST_STATES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "partition": frozenset({"NonExistent", "New", "Online", "Offline"}),
        "replica": frozenset({"NonExistent", "Online", "DeletionIneligible"}),
    }
)
"""Machine → the states in which a term may find something, or begin to know it."""
