"""The axes on which users choose by name, each with its registry. A scenario picks a value on every axis but the last.

This is where a name of any kind can be looked up, and where objects of users will be registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from nemesis.checkers import CHECKERS
from nemesis.faults import FAULTS
from nemesis.mutants import MUTANTS
from nemesis.registry import Registry
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.targets import TARGETS
from nemesis.workloads import WORKLOADS

AXES: Final[Mapping[str, Registry[Any]]] = MappingProxyType(
    {
        "targets": TARGETS,
        "runtimes": RUNTIMES,
        "faults": FAULTS,
        "workloads": WORKLOADS,
        "checkers": CHECKERS,
        "mutants": MUTANTS,
    }
)
"""The plural noun that ``nemesis list`` uses, and the registry."""
