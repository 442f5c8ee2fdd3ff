"""The fault plan: what strikes when, decided before the run.

A plan is a list of (time, fault). It comes from a seed, or from a file; both forms are equal, and
the plan of every run is stored with it. Written as YAML::

    - at_s: 6.5
      fault: partition
      shape: from-zookeeper
      target: controller
      direction: mute
      duration_s: 6.2

``at_s`` counts from the start of the workload. Deriving a plan is pure: the same seed, settings
and window give the same plan anywhere. The victim that a name stands for is found when the fault
strikes, so two runs of one plan need not strike the same broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final

import msgspec
import yaml

from nemesis.faults import FAULTS, Fault, traced_trigger
from nemesis.faults.base import DrawRange
from nemesis.faults.client_selectors import CLIENT
from nemesis.faults.recipes import RECIPES, Steps
from nemesis.registry import unknown
from nemesis.support.errors import UsageError

FILE_NAME = "plan.yaml"
"""In the directory of a run."""
MAX_AT_S = 86_400.0
MAX_FAULTS = 10_000
MAX_REDRAWS = 50
_ROLES_IN_GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {"one": "coordinator", "leader": "coordinator", CLIENT: "group-leader"}
)
"""By the selectors of any broker or client, those of the broker or client that is important to a group."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault and when it strikes, in seconds from the start of the workload."""

    at_s: float
    fault: Fault
    after: str | None = None
    """The traced event for which the fault waits from ``at_s`` on (``traced_trigger``); None: it does not wait."""
    may_miss: bool = False
    """Whether the fault strikes without the event when the event does not come, as drawn faults do, or is skipped."""

    @property
    def end_s(self) -> float:
        return self.at_s + self.fault.duration_s

    @property
    def recovered_s(self) -> float:
        """When the next recipe or fault may count on what this fault struck: a killed broker must start first."""
        return self.end_s + self.fault.recovery_s


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """How plans are drawn. ``kinds`` are names of ``FAULTS``, ``recipes`` names of ``RECIPES``."""

    kinds: tuple[str, ...]
    recipes: tuple[str, ...]
    durations: DrawRange
    gaps: DrawRange
    """Between the end of a recipe or fault, restarts included, and the next: the cluster's time to recover."""
    nodes: frozenset[str] = frozenset()
    """The brokers. Faults that this cluster cannot have are not drawn; without any all are."""
    triggers: tuple[str, ...] = ()
    """Traced events (``traced_trigger``): half of the single faults wait for one of them. Without any, none waits."""
    weights: Mapping[str, int] = field(default_factory=dict)
    """How many cards a kind or a recipe has in the deck; 1 for those not named."""
    groups: tuple[str, ...] = ()
    """Groups of consumers: many faults of any broker strike the coordinator of one, and many of clients its leader."""

    def cards_of(self, name: str) -> int:
        """Return how many cards of this kind or recipe are in the deck."""
        return self.weights.get(name, 1)

    def suits(self, fault: Fault) -> bool:
        """Whether the fault makes sense in this cluster."""
        try:
            if self.nodes:
                fault.check(self.nodes)
        except UsageError:
            return False
        return True


Plan = tuple[PlannedFault, ...]


def derive(rng: Random, settings: PlanSettings, *, start_s: float, end_s: float) -> Plan:
    """Return a plan whose faults all begin and end inside the window.

    Every enabled kind and every recipe is a card, or several (``weights``); the deck is shuffled, dealt out, and
    shuffled again, so a run sees as many different things as its time allows. Recipes and single faults take turns
    while there are both: recipes reach what single faults do not.
    """
    deck: list[Steps] = []
    plan: list[PlannedFault] = []
    at_s, misses = start_s, 0
    singles, recipes = _cards(settings)
    while (singles or recipes) and misses < len(singles) + len(recipes):
        deck = deck or _shuffled(rng, singles, recipes)
        dealt = [
            PlannedFault(round(at_s + offset_s, 2), fault)
            for offset_s, fault in deck.pop()(rng, settings.durations)
        ]
        fits = max(planned.end_s for planned in dealt) <= end_s
        if not fits or not all(settings.suits(planned.fault) for planned in dealt):
            misses += 1  # a shorter one may still fit
            continue
        misses = 0
        if len(dealt) == 1:
            dealt = [maybe_triggered(dealt[0], rng, settings)]
        plan += dealt
        at_s = max(planned.recovered_s for planned in dealt) + settings.gaps.draw(rng)
    return tuple(sorted(plan, key=lambda planned: planned.at_s))


def maybe_triggered(planned: PlannedFault, rng: Random, settings: PlanSettings) -> PlannedFault:
    """Return the fault, which in half of the cases waits for an event, and then in half strikes who traced it.

    Without triggers in the settings it never waits, and nothing is drawn.
    """
    if not settings.triggers:
        return planned
    if rng.random() < 0.5 or getattr(planned.fault, "when", "now") != "now":
        return planned
    fault = planned.fault
    if rng.random() < 0.5 and "selector" in fault.__struct_fields__:
        at_tracer = msgspec.structs.replace(fault, selector=traced_trigger.TRACER)
        fault = at_tracer if settings.suits(at_tracer) else fault
    return PlannedFault(planned.at_s, fault, rng.choice(settings.triggers), may_miss=True)


def redraw(
    rng: Random, settings: PlanSettings, *, at_s: float, end_s: float
) -> PlannedFault | None:
    """Return another fault that fits between the two times, for one that was skipped; None when none fits."""
    kinds = [kind for kind in settings.kinds for _ in range(settings.cards_of(kind))]
    rng.shuffle(kinds)
    for kind in kinds:
        planned = PlannedFault(round(at_s, 2), draw(FAULTS[kind], rng, settings))
        if planned.end_s <= end_s and settings.suits(planned.fault):
            return planned
    return None


def _cards(settings: PlanSettings) -> tuple[list[Steps], list[Steps]]:
    enabled = frozenset(settings.kinds)
    singles = [
        _single(FAULTS[kind], settings)
        for kind in settings.kinds
        for _ in range(settings.cards_of(kind))
    ]
    recipes = [
        RECIPES[name].steps
        for name in settings.recipes
        if RECIPES[name].kinds <= enabled
        for _ in range(settings.cards_of(name))
    ]
    return singles, recipes


def _shuffled(rng: Random, singles: list[Steps], recipes: list[Steps]) -> list[Steps]:
    """Return all cards, the last to be dealt first."""
    piles = [rng.sample(recipes, len(recipes)), rng.sample(singles, len(singles))]
    pairs = zip_longest(*piles)
    return [card for pair in pairs for card in pair if card is not None][::-1]


def _single(kind: type[Fault], settings: PlanSettings) -> Steps:
    return lambda rng, _: [(0.0, draw(kind, rng, settings))]


def draw(kind: type[Fault], rng: Random, settings: PlanSettings) -> Fault:
    """Return a fault of the kind, drawn until it suits the cluster, a bounded number of times: perhaps none does."""
    fault = kind.draw(rng, settings.durations)
    for _ in range(MAX_REDRAWS):
        if settings.suits(fault):
            break
        fault = kind.draw(rng, settings.durations)
    return _maybe_at_group(fault, rng, settings)


def _maybe_at_group(fault: Fault, rng: Random, settings: PlanSettings) -> Fault:
    """Return a fault of any broker or client, which in half of the cases strikes one that is important to a group.

    Without groups in the settings nothing is drawn.
    """
    role = _ROLES_IN_GROUPS.get(getattr(fault, "selector", ""))
    if not settings.groups or role is None or getattr(fault, "when", "now") != "now":
        return fault
    group, is_aimed = rng.choice(settings.groups), rng.random() < 0.5
    aimed = msgspec.structs.replace(fault, selector=f'{role}("{group}")')
    return aimed if is_aimed and settings.suits(aimed) else fault


def encode(plan: Iterable[PlannedFault]) -> list[dict[str, Any]]:
    """Return the plan as plain data, the form of a plan file."""
    return [
        {
            "at_s": planned.at_s,
            "fault": planned.fault.name,
            **({} if planned.after is None else {"after": planned.after}),
            **({"may_miss": True} if planned.may_miss else {}),
            **msgspec.to_builtins(planned.fault),
        }
        for planned in plan
    ]


def write(path: Path, plan: Iterable[PlannedFault]) -> None:
    """Write a plan file."""
    path.write_text(yaml.safe_dump(encode(plan), sort_keys=False), encoding="utf-8")


def read(path: Path) -> Plan:
    """Read a plan file; raises ``UsageError`` with one sentence that names the file and what is wrong."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the plan {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"the plan {path} is not valid YAML: {reason}") from None
    except RecursionError:
        raise UsageError(f"the plan {path} is wrong: it is nested too deeply") from None
    try:
        return decode(data)
    except UsageError as error:
        raise UsageError(f"the plan {path} is wrong: {error}") from None


def decode(data: object) -> Plan:
    """Return the plan that plain data stands for; raises ``UsageError``."""
    if not isinstance(data, list):
        raise UsageError("it is no list of faults")
    if len(data) > MAX_FAULTS:
        raise UsageError(f"it has {len(data)} faults; allowed are at most {MAX_FAULTS}")
    plan = [_decode_one(number, entry) for number, entry in enumerate(data, 1)]
    return tuple(sorted(plan, key=lambda planned: planned.at_s))


def _decode_one(number: int, entry: object) -> PlannedFault:
    if not isinstance(entry, Mapping):
        raise UsageError(f"entry {number} is no mapping with at_s and fault")
    fields = dict(entry)
    at_s, name = fields.pop("at_s", None), fields.pop("fault", None)
    after, may_miss = fields.pop("after", None), fields.pop("may_miss", False)
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not 0 <= at_s <= MAX_AT_S:
        raise UsageError(f"entry {number} has at_s {at_s!r}; allowed are 0 to {MAX_AT_S:g} seconds")
    if not isinstance(name, str) or name not in FAULTS:
        raise UsageError(f"entry {number} has {unknown('fault', str(name), FAULTS)}")
    try:
        fault = msgspec.convert(fields, FAULTS[name], strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"entry {number} ({name}): {error}") from None
    if after is not None and not isinstance(after, str):
        raise UsageError(f"entry {number} has after {after!r}: expected a trigger such as isr-join")
    if after is not None:
        try:
            traced_trigger.parse(after)
        except UsageError as error:
            raise UsageError(f"entry {number} ({name}): {error}") from None
    if not isinstance(may_miss, bool):
        raise UsageError(f"entry {number} has may_miss {may_miss!r}: expected true or false")
    return PlannedFault(float(at_s), fault, after, may_miss=may_miss)


def check(plan: Sequence[PlannedFault], *, nodes: frozenset[str], end_s: float) -> None:
    """Raise ``UsageError`` when a fault names nodes that are not there or does not end before ``end_s``."""
    for number, planned in enumerate(plan, 1):
        planned.fault.check(nodes)
        _check_trigger(number, planned, nodes)
        if planned.end_s > end_s:
            raise UsageError(
                f"fault {number} of the plan ({planned.fault.name} at {planned.at_s:g} s) ends at "
                f"{planned.end_s:g} s: with this --time-limit faults end by {end_s:g} s"
            )


def _check_trigger(number: int, planned: PlannedFault, nodes: frozenset[str]) -> None:
    """Raise ``UsageError`` when the trigger names a broker that does not exist, or the victim needs a trigger."""
    if planned.after is None:
        if getattr(planned.fault, "selector", None) == traced_trigger.TRACER:
            raise UsageError(
                f"fault {number} of the plan ({planned.fault.name}) has the target tracer: expected a trigger, "
                "got none; add after"
            )
        return
    broker = traced_trigger.parse(planned.after).broker
    if broker is not None and f"broker-{broker}" not in nodes:
        raise UsageError(
            f"fault {number} of the plan ({planned.fault.name}) waits for {planned.after!r}: expected one of "
            f"{', '.join(sorted(nodes))}, got broker-{broker}"
        )
