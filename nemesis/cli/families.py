"""Families of properties, one line each on the console: by the module or package that decides a property."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers import property_named
from nemesis.checkers.framework.property import Property

OTHERS: Final = "others"
OBJECTIVES: Final = "objectives"
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "controller": (
            "controller",
            "broker_epochs",
            "office",
            "quorum",
            "broker_failures",
        ),
        "leadership": ("leadership", "elections_answered", "transitions"),
        "metadata": ("states_sent", "control_effects", "metadata", "metadata_answers"),
        "replication": ("replication", "segment_deletions", "tombstones", "clean_stops"),
        "clients": (
            "log",
            "client_offsets",
            "times_answered",
            "fetches_answered",
            "leader_epochs_fenced",
        ),
        "groups": ("groups",),
        "producers": ("transactions",),
        "administration": ("deletion", "reassignment"),
        "exceptions": ("exceptions",),
        "recovery": ("convergence", "liveness"),
        "faults": ("faults",),
        OBJECTIVES: (),
        "objects": ("linearizable",),
        "transactions": ("cycles",),
    }
)
"""By the family, the modules and packages of ``nemesis.checkers`` with its checks; in the order of the console."""
_FAMILY_OF_MODULE: Final = {
    module: family for family, modules in FAMILIES.items() for module in modules
}


def family_of(name: str) -> str:
    """Return the family of the property with this name; ``OTHERS`` for a property of a user."""
    decided = property_named(name)
    if decided is None:
        return OBJECTIVES if name.startswith("objective-") else OTHERS
    return _FAMILY_OF_MODULE.get(module_of(decided), OTHERS)


def module_of(decided: Property) -> str:
    """Return the module or package of ``nemesis.checkers`` with the check that decides the property."""
    return decided.check.__module__.removeprefix("nemesis.checkers.").partition(".")[0]
