"""Planted bugs, one module each, most of them real ones from Kafka's history.

A module tells its story in the docstring (what, where it was fixed, which property must catch it) and holds one
``MUTANT``. ``base`` says what a mutant is (start here). The reference itself never knows of them: a broker
process that is told to carry a mutant replaces a method when it starts (``nemesis.launch_reference``).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.mutants.acknowledge_before_replication import MUTANT as ACKNOWLEDGE_BEFORE_REPLICATION
from nemesis.mutants.base import Mutant, MutantError
from nemesis.mutants.hw_follows_leader_leo import MUTANT as HW_FOLLOWS_LEADER_LEO
from nemesis.mutants.leader_epoch_not_raised import MUTANT as LEADER_EPOCH_NOT_RAISED
from nemesis.mutants.no_controller_epoch_check import MUTANT as NO_CONTROLLER_EPOCH_CHECK
from nemesis.mutants.truncate_to_hw import MUTANT as TRUNCATE_TO_HW
from nemesis.mutants.unfenced_controller_writes import MUTANT as UNFENCED_CONTROLLER_WRITES

__all__ = ["MUTANTS", "Mutant", "MutantError", "apply"]

MUTANTS: Final[Mapping[str, Mutant]] = MappingProxyType(
    {
        mutant.name: mutant
        for mutant in (
            NO_CONTROLLER_EPOCH_CHECK,
            UNFENCED_CONTROLLER_WRITES,
            LEADER_EPOCH_NOT_RAISED,
            HW_FOLLOWS_LEADER_LEO,
            ACKNOWLEDGE_BEFORE_REPLICATION,
            TRUNCATE_TO_HW,
        )
    }
)
"""Every mutant by its name."""


def apply(name: str) -> None:
    """Plant the bug in this process; raises ``MutantError`` for an unknown name or a place that is gone."""
    if name not in MUTANTS:
        raise MutantError(f"there is no mutant {name!r}; known are: {', '.join(MUTANTS)}")
    MUTANTS[name].plant()
