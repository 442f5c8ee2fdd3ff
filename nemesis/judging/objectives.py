"""Objectives of a scenario: the longest outages that its author accepts, each a property with a verdict of its own.

The outages are those that ``liveness`` measures. An objective is ``unknown`` where liveness is, and ``invalid`` if one
outage is longer than the objective. Faults excuse nothing: an objective is about outages under faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from nemesis.checkers.framework.model import Finding, Outcome, Result, Stretch, Verdict, combine

MEASURED_BY: Final = "liveness"
OUTAGES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "leaderless_s": ("without-leader", "had no leader"),
        "controllerless_s": ("without-controller", "had no controller"),
        "unwritable_s": ("unwritable", "acknowledged nothing"),
    }
)
"""By the objective's key, the label of its outages in ``liveness``, and what they are in words."""
_NS: Final = 1e9


def with_objectives(outcome: Outcome, objectives: Mapping[str, Any]) -> Outcome:
    """Return the outcome with a result for each objective that the scenario states."""
    measured = next((item for item in outcome.results if item.property == MEASURED_BY), None)
    results = tuple(
        _judged(key, float(limit_s), measured)
        for key, limit_s in objectives.items()
        if key in OUTAGES and limit_s is not None
    )
    if not results:
        return outcome
    return msgspec.structs.replace(
        outcome,
        results=outcome.results + results,
        verdict=combine([outcome.verdict, *(result.verdict for result in results)]),
    )


def property_of(key: str) -> str:
    """Return the name of the objective's property: ``objective-leaderless``."""
    return f"objective-{key.removesuffix('_s')}"


def _judged(key: str, limit_s: float, measured: Result | None) -> Result:
    name = property_of(key)
    if measured is None or measured.verdict is Verdict.UNKNOWN:
        return Result(property=name, verdict=Verdict.UNKNOWN, checked=0, unit="outages")
    label, description = OUTAGES[key]
    findings = tuple(
        Finding(
            property=name,
            verdict=Verdict.INVALID,
            key=outage.key,
            sentence=f"It {description} for {_seconds(outage):.2f} s; the objective is {limit_s:g} s.",
        )
        for outage in measured.stretches
        if outage.label == label and _seconds(outage) > limit_s
    )
    return Result(
        property=name,
        verdict=Verdict.INVALID if findings else Verdict.VALID,
        checked=measured.checked,
        unit=measured.unit,
        findings=findings,
        finding_count=len(findings),
    )


def objectives_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the objectives of a scenario as ``run.json`` has it; empty for runs of before objectives."""
    stated = config.get("objectives")
    return stated if isinstance(stated, dict) else {}


def _seconds(outage: Stretch) -> float:
    return (outage.stop_ns - outage.start_ns) / _NS
