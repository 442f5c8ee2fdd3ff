"""A run proves something about faults only if they struck.

**fault-effect**: every fault that was applied had a measured effect and was seen to be healed, and at most a fifth of
the faults of each kind were skipped. It never convicts the cluster: what it finds makes the run ``unknown``.
Smallest break: a ``fault-applied`` whose effect is ``none``.

* begun (``fault-invoke``) and neither applied nor skipped: nobody knows what it did.
* failed by itself, because what carried it out did: nobody knows what it was from then on.
* applied without measured effect: what it should have shown was not tested.
* more than a fifth skipped of one kind: the plan was not carried out.
* skipped because its trigger did not come: the plan asked for that moment. A drawn fault strikes without its trigger.
* not verifiably healed though the run went on to its quiet time: what follows was judged under a fault. A run that
  was interrupted before then owes no heal.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from nemesis.checkers.breaks import ends as breaks
from nemesis.checkers.explain import ends
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.faults import LOST, MEASURED, TRIGGER_MISSED, VERIFIED, measurements

MAX_SKIPPED_SHARE = 0.2
AFTER_HEAL = frozenset({"quiet", "final-reads", "convergence", "end"})
"""Phases that begin only when all faults should be healed."""


class FaultEffect(EventListCheck):
    kinds = frozenset(
        {
            Kind.FAULT_INVOKE,
            Kind.FAULT_APPLIED,
            Kind.FAULT_SKIPPED,
            Kind.FAULT_HEALED,
            Kind.PHASE,
        }
    )
    columns = ("fault", "fault_id", "targets", "effect", "error", "detail", "phase")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (FAULT_EFFECT,)

    def judge(self, rows: list[Row]) -> Results:
        steps: dict[int | None, dict[str, Row]] = defaultdict(dict)
        for row, event in rows:
            if event.kind != Kind.PHASE:
                steps[event.fault_id].setdefault(event.kind, (row, event))
        went_on = any(event.kind == Kind.PHASE and event.phase in AFTER_HEAL for _, event in rows)
        findings: list[Finding] = []
        for taken in steps.values():
            findings += self._judge_fault(taken, went_on=went_on)
        findings += self._skipped(rows)
        applied = sum(Kind.FAULT_APPLIED in taken for taken in steps.values())
        return conclude(FAULT_EFFECT, checked=applied, findings=findings)

    def _judge_fault(self, taken: dict[str, Row], *, went_on: bool) -> list[Finding]:
        skipped = taken.get(Kind.FAULT_SKIPPED)
        if skipped is not None and skipped[1].error == TRIGGER_MISSED:
            return [
                self._unknown(
                    skipped,
                    "did not strike: the trigger of its plan did not come while it could strike",
                )
            ]
        applied, healed = taken.get(Kind.FAULT_APPLIED), taken.get(Kind.FAULT_HEALED)
        invoked = taken.get(Kind.FAULT_INVOKE)
        if applied is None:
            if invoked is None or Kind.FAULT_SKIPPED in taken:
                return []
            return [self._unknown(invoked, "was begun, but whether it struck is not recorded")]
        findings = []
        for row, event in (applied, healed or applied):
            if (reason := _lost(event)) is not None:
                return [self._unknown((row, event), f"failed by itself: {reason}")]
        if applied[1].effect != MEASURED:
            findings.append(self._unknown(applied, "was injected, but nemesis measured no effect"))
        if healed is not None and healed[1].effect != VERIFIED:
            findings.append(
                self._unknown(healed, "was undone, but nobody could see that it was gone")
            )
        if healed is None and went_on:
            findings.append(self._unknown(applied, "was never healed though the run went on"))
        return findings

    def _skipped(self, rows: list[Row]) -> list[Finding]:
        skipped: dict[str, list[int]] = defaultdict(list)
        planned: dict[str, int] = defaultdict(int)
        for row, event in rows:
            if event.kind in (Kind.FAULT_APPLIED, Kind.FAULT_SKIPPED):
                planned[event.fault or "?"] += 1
            if event.kind == Kind.FAULT_SKIPPED and event.error != TRIGGER_MISSED:
                skipped[event.fault or "?"].append(row)
        return [
            finding(
                self.name,
                fault,
                f"{len(skipped_rows)} of {planned[fault]} faults of kind {fault} were skipped: "
                "no target was found in time, or another fault held it.",
                *skipped_rows[:3],
                verdict=Verdict.UNKNOWN,
            )
            for fault, skipped_rows in skipped.items()
            if len(skipped_rows) > MAX_SKIPPED_SHARE * planned[fault]
        ]

    def _unknown(self, proved_by: Row, problem: str) -> Finding:
        row, event = proved_by
        sentence = f"{_name(event)} {problem}."
        return finding(self.name, _name(event), sentence, row, verdict=Verdict.UNKNOWN)


def _lost(event: Event) -> str | None:
    """Return why a fault failed by itself, if it did."""
    return measurements(event.detail).get(LOST)


def _name(event: Event) -> str:
    on = f" on {', '.join(event.targets)}" if event.targets else ""
    return f"{event.fault}{on}"


FAULT_EFFECT: Final = Property(
    name="fault-effect",
    promise="Every fault struck measurably and was seen to be undone.",
    unit="faults",
    unknown=(
        "A fault had no measured effect, was not verifiably undone, or missed the trigger of its plan, or more than a "
        "fifth of a kind were skipped."
    ),
    source="A requirement of this harness: a fault without effect proves nothing.",
    check=FaultEffect,
    decided_from=frozenset({EventSource.FAULTS, EventSource.HARNESS}),
    reason=ends.fault_effect,
    breaks=breaks.FAULT_EFFECT,
)
