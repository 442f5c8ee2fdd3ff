"""Plans: derived from a seed, written, read, refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.faults import FAULTS
from nemesis.faults import plan as plans
from nemesis.faults.base import DrawRange
from nemesis.faults.kill import Kill
from nemesis.faults.partition import Partition
from nemesis.faults.plan import PlannedFault, PlanSettings
from nemesis.faults.recipes import RECIPES
from nemesis.support.errors import UsageError

ALL = PlanSettings(
    kinds=tuple(FAULTS),
    recipes=tuple(name for name, recipe in RECIPES.items() if not recipe.has_voters),
    durations=DrawRange(5.0, 7.0),
    gaps=DrawRange(2.0, 3.0),
)


def derive(seed: int, end_s: float = 54.0) -> plans.Plan:
    return plans.derive(Random(f"{seed}/plan"), ALL, start_s=4.0, end_s=end_s)


@given(seed=st.integers(0, 2**32), end_s=st.floats(12.0, 300.0))
@settings(max_examples=60)
def test_a_plan_is_a_function_of_its_seed_and_stays_in_its_window(seed: int, end_s: float) -> None:
    plan = derive(seed, end_s)
    assert plan == derive(seed, end_s)
    assert all(planned.at_s >= 4.0 and planned.end_s <= end_s for planned in plan)
    assert [planned.at_s for planned in plan] == sorted(planned.at_s for planned in plan)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_plan_survives_being_written_and_read(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / f"plan-{seed}.yaml"
    plan = derive(seed)
    plans.write(file, plan)
    assert plans.read(file) == plan


def test_in_some_seeds_every_kind_and_every_shape_is_met() -> None:
    faults = [planned.fault for seed in range(120) for planned in derive(seed)]
    assert {fault.name for fault in faults} == set(FAULTS)
    shapes = {fault.shape for fault in faults if isinstance(fault, Partition)}
    assert shapes >= {"one-node", "one-way", "from-zookeeper"}


@pytest.mark.parametrize("kind", ["kill", "kill-controller", "restart"])
def test_the_next_card_waits_until_a_killed_broker_has_started(kind: str) -> None:
    only = PlanSettings(
        kinds=(kind,), recipes=(), durations=DrawRange(5.0, 5.0), gaps=DrawRange(2.0, 2.0)
    )
    first, second, *_ = plans.derive(Random(1), only, start_s=0.0, end_s=60.0)
    assert second.at_s == pytest.approx(first.end_s + 3.0 + 2.0)


def test_a_minute_still_has_room_for_many_faults() -> None:
    counts = [len(derive(seed)) for seed in range(50)]
    assert min(counts) >= 5
    assert sum(counts) / len(counts) >= 8


@pytest.mark.parametrize(
    ("count", "impossible"),
    [
        (1, {"halves", "one-node", "one-way", "bridge", "majority-ring"}),
        (2, {"bridge", "majority-ring"}),
        (3, set()),
    ],
)
def test_shapes_that_cut_nothing_are_neither_drawn_nor_accepted(
    count: int, impossible: set[str]
) -> None:
    nodes = frozenset(f"broker-{number}" for number in range(1, count + 1))
    shapes = {"halves", "one-node", "one-way", "bridge", "majority-ring", "from-clients"}
    for shape in sorted(shapes):
        plan = [PlannedFault(5.0, Partition(shape=shape, duration_s=1.0))]  # type: ignore[arg-type]
        if shape not in impossible:
            plans.check(plan, nodes=nodes, end_s=54.0)
            continue
        with pytest.raises(UsageError, match=f"'{shape}' cuts nothing in a cluster of {count} "):
            plans.check(plan, nodes=nodes, end_s=54.0)
    few = PlanSettings(
        kinds=("partition",),
        recipes=tuple(RECIPES),
        durations=DrawRange(1.0, 1.0),
        gaps=DrawRange(0.0, 0.0),
        nodes=nodes,
    )
    derived = plans.derive(Random(4), few, start_s=0.0, end_s=200.0)
    assert len(derived) > 100
    plans.check(derived, nodes=nodes, end_s=200.0)


def test_only_the_enabled_kinds_are_drawn() -> None:
    only = PlanSettings(
        kinds=("kill", "pause"),
        recipes=tuple(RECIPES),
        durations=DrawRange(5.0, 7.0),
        gaps=DrawRange(2.0, 3.0),
    )
    plan = plans.derive(Random(1), only, start_s=0.0, end_s=120.0)
    assert {planned.fault.name for planned in plan} == {"kill", "pause"}


def test_a_window_too_small_for_any_fault_gives_an_empty_plan() -> None:
    kills = PlanSettings(
        kinds=("kill",), recipes=(), durations=DrawRange(5.0, 7.0), gaps=DrawRange(2.0, 3.0)
    )
    assert plans.derive(Random(1), kills, start_s=4.0, end_s=6.0) == ()


def test_a_redrawn_fault_fits_into_what_is_left() -> None:
    again = plans.redraw(Random(3), ALL, at_s=52.0, end_s=54.0)
    assert again is not None
    assert again.end_s <= 54.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not valid YAML"),
        ("fault: kill", "is no list of faults"),
        ("- 3", "entry 1 is no mapping"),
        ("- {at_s: -1, fault: kill}", "entry 1 has at_s -1"),
        ("- {at_s: .nan, fault: kill}", "entry 1 has at_s nan"),
        ("- {at_s: 1, fault: earthquake}", "unknown fault 'earthquake': allowed are add-broker, "),
        ("- {at_s: 1, fault: kill, duration_s: -5}", "duration_s"),
        ("- {at_s: 1, fault: kill, depth: 2}", "depth"),
        ("- {at_s: 1, fault: partition, shape: star}", "star"),
    ],
)
def test_a_wrong_plan_is_one_sentence_with_the_file_and_the_place(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        plans.read(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml cannot be read: No such file"):
        plans.read(tmp_path / "nowhere.yaml")


def test_a_plan_must_end_in_time_and_name_brokers_that_exist() -> None:
    nodes = frozenset({"broker-1"})
    late = [PlannedFault(50.0, Kill(duration_s=10.0))]
    with pytest.raises(UsageError, match="ends at 60 s: with this --time-limit faults end by 54 s"):
        plans.check(late, nodes=nodes, end_s=54.0)
    strange = [PlannedFault(5.0, Kill(selector="broker-7", duration_s=1.0))]
    with pytest.raises(UsageError, match="unknown selector 'broker-7'"):
        plans.check(strange, nodes=nodes, end_s=54.0)


def test_a_weight_makes_a_kind_more_frequent() -> None:
    def kills(weights: dict[str, int]) -> int:
        drawn = replace(ALL, kinds=("kill", "pause"), recipes=(), weights=weights)
        plans_of = (
            plans.derive(Random(seed), drawn, start_s=4.0, end_s=54.0) for seed in range(40)
        )
        return sum(planned.fault.name == "kill" for plan in plans_of for planned in plan)

    assert kills({"kill": 4}) > 1.4 * kills({})
    assert kills({"kill": 1, "pause": 1}) == kills({})
