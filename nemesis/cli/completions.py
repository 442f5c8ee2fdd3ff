"""What a shell offers behind an argument or an option: the names that the registries hold now.

Each function imports its registry when a shell asks: the commands know no names.
"""

from __future__ import annotations

from collections.abc import Iterable


def scenarios(incomplete: str) -> list[str]:
    """Return the scenarios that come with nemesis and begin so."""
    from nemesis.scenarios import scenario

    return _beginning(scenario.names(), incomplete)


def targets(incomplete: str) -> list[str]:
    """Return the targets that begin so."""
    return _of_axis("targets", incomplete)


def runtimes(incomplete: str) -> list[str]:
    """Return the runtimes that begin so."""
    return _of_axis("runtimes", incomplete)


def faults(incomplete: str) -> list[str]:
    """Return comma-separated lists that continue what is written with one more kind of fault."""
    return _continued("faults", incomplete)


def checkers(incomplete: str) -> list[str]:
    """Return comma-separated lists that continue what is written with one more property."""
    return _continued("checkers", incomplete)


def mutants(incomplete: str) -> list[str]:
    """Return the planted bugs that begin so."""
    return _of_axis("mutants", incomplete)


def _of_axis(axis: str, incomplete: str) -> list[str]:
    from nemesis.scenarios.axes import AXES

    return _beginning(AXES[axis], incomplete)


def _continued(axis: str, incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _of_axis(axis, last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
