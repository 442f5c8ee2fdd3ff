"""Every axis has a registry, and what is registered there can be chosen."""

from __future__ import annotations

import pytest

from nemesis.registry import Registry, UnknownNameError
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios import scenario
from nemesis.scenarios.axes import AXES
from nemesis.support.errors import UsageError


@pytest.mark.parametrize("axis", AXES)
def test_every_axis_holds_objects_under_their_names(axis: str) -> None:
    registry = AXES[axis]
    assert isinstance(registry, Registry)
    assert len(registry) > 0
    assert axis == f"{registry.kind}s"
    for name, entry in registry.items():
        assert registry.find(name) is entry


@pytest.mark.parametrize("axis", AXES)
def test_an_unknown_name_lists_all_names(axis: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        AXES[axis].find("gremlin")
    assert all(name in str(caught.value) for name in AXES[axis])


def test_only_the_simulation_is_not_in_real_time() -> None:
    assert [name for name, kind in RUNTIMES.items() if kind.real_time is None] == ["simulation"]


def test_a_scenario_names_its_runtime_by_the_registry() -> None:
    with pytest.raises(UsageError, match="unknown runtime 'cloud': allowed are docker, local, sim"):
        scenario.override(scenario.load("topics"), runtime="cloud")
