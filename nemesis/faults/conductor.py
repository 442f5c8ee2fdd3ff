"""Carrying out a plan: each fault at its time, intent before, measured effect after, heal and
proof of it.

Each planned fault is a task of its own, so faults may overlap. A selector that cannot be resolved in
five seconds makes the fault ``skipped``; another one is drawn in its place, once, unless it has
``after``. The five seconds do not run while another fault lasts longer than planned, because a broker
takes its time to start, say. When the faults' time is over, whatever is still in force is undone at once. Cancelled
(the run is interrupted), the conductor undoes nothing: the runtime's stop ends all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from nemesis.faults import FAULTS
from nemesis.faults.base import Fault, FaultContext, Measured, SelectorUnresolved, Strike
from nemesis.faults.plan import PlannedFault, PlanSettings, redraw
from nemesis.faults.selectors import TOUCHED
from nemesis.faults.traced_trigger import TRACER, TracedTrigger, parse
from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.history.vocabulary.faults import LOST, MEASURED, NO_EFFECT, TRIGGER_MISSED, VERIFIED
from nemesis.interfaces.errors import FaultLost, NodeExited, RuntimeFailure
from nemesis.interfaces.runtime import first_missing

RESOLVE_TIMEOUT_S = 5.0
RESOLVE_INTERVAL_S = 0.03
VERIFY_INTERVAL_S = 0.25
EVENT_TIMEOUT_S = 8.0
REAIM_INTERVAL_S = 1.0
"""Of a fault that waits for an event: how often its victims are chosen again."""


class Conductor:
    """One run's faults. ``seed`` makes each fault's own randomness; ``start`` is the loop time of ``at_s`` 0."""

    def __init__(
        self,
        context: FaultContext,
        recorder: Recorder,
        *,
        plan: Sequence[PlannedFault],
        settings: PlanSettings,
        seed: int,
        redraws: bool = True,
    ) -> None:
        """``redraws``: whether another fault takes the place of a skipped one; otherwise the plan alone strikes."""
        self._redraws = redraws
        self._context = context
        self._recorder = recorder
        self._plan = plan
        self._settings = _only_supported(settings, context)
        self._seed = seed
        self._time_is_over = asyncio.Event()
        self._start = 0.0
        self._end_s = 0.0
        self._next_id = len(plan)
        self._in_force: dict[int, str] = {}
        self._planned_ends: dict[int, float] = {}
        """Of the faults in force: the loop time until which each should last."""
        self.healed_at = 0.0
        """The loop time at which the last fault so far was undone; 0 before the first."""

    @property
    def in_force(self) -> list[str]:
        """What is broken at the moment, for people: ``partition broker-2``."""
        return [label for _, label in sorted(self._in_force.items())]

    async def conduct(self, *, start: float, end_s: float, undo_timeout_s: float) -> None:
        """Carry out the whole plan; returns when every fault is undone, or could not be verified in time.

        ``start`` is the loop time from which ``at_s`` counts; at ``end_s`` the faults' time is over.
        Raises ``RuntimeFailure`` or ``HarnessError`` when the place breaks.
        """
        self._start, self._end_s = start, end_s
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                for number, planned in enumerate(self._plan):
                    group.create_task(
                        self._carry_out(number, planned, undo_timeout_s),
                        name=f"fault-{number}-{planned.fault.name}",
                    )
                over = group.create_task(asyncio.sleep(max(0.0, start + end_s - loop.time())))
                await over
                self._time_is_over.set()
        except ExceptionGroup as group_error:
            raise _first(group_error) from group_error

    async def _carry_out(self, fault_id: int, planned: PlannedFault, undo_timeout_s: float) -> None:
        if not await self._pause_until(self._start + planned.at_s):
            return
        fault, number = planned.fault, fault_id
        rng = Random(f"{self._seed}/fault/{fault_id}")
        if planned.after is not None:
            trigger = parse(planned.after)
            strike = await self._aim_at_event(
                number, fault, trigger, rng, may_miss=planned.may_miss
            )
            if strike is not None:
                await self._strike(number, fault, strike, undo_timeout_s)
            return
        strike = await self._aim(number, fault, rng)
        if strike is None and not self._redraws:
            return
        if strike is None:
            now_s = asyncio.get_running_loop().time() - self._start
            again = redraw(rng, self._settings, at_s=now_s, end_s=self._end_s)
            if again is None:
                return
            fault, number, self._next_id = again.fault, self._next_id, self._next_id + 1
            strike = await self._aim(number, fault, rng)
            if strike is None:
                return
        await self._strike(number, fault, strike, undo_timeout_s)

    async def _aim_at_event(
        self,
        fault_id: int,
        fault: Fault,
        trigger: TracedTrigger,
        rng: Random,
        *,
        may_miss: bool,
    ) -> Strike | None:
        """Wait for the event with the victims at hand, so that the strike follows it within milliseconds.

        The victims are chosen again every second: roles move. When the event does not come in time, a fault that
        ``may_miss`` it strikes without it and notes that in its intent (``tracer`` is any broker then). Any other is
        skipped: its plan did not get what it asked for.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + EVENT_TIMEOUT_S
        is_tracer = getattr(fault, "selector", None) == TRACER
        while not self._time_is_over.is_set() and loop.time() < deadline:
            strike = None if is_tracer else await self._aim(fault_id, fault, rng)
            if strike is None and not is_tracer:
                return None
            event = await self._context.traces.first(trigger.matcher(), timeout_s=REAIM_INTERVAL_S)
            if event is not None and strike is None:
                context = replace(self._context, tracer=event.process)
                strike = await self._aim_once(fault, context, rng)
            if event is not None and strike is not None:
                return _with_intent(strike, after=trigger.kind)
            if strike is not None and not fault.shares_victim:
                self._context.touched.subtract(strike.victims)
        if not may_miss:
            self._recorder.record(
                Kind.FAULT_SKIPPED, fault=fault.name, fault_id=fault_id, error=TRIGGER_MISSED
            )
            return None
        if self._time_is_over.is_set():
            return None
        anyone = msgspec.structs.replace(fault, selector="one") if is_tracer else fault
        strike = await self._aim(fault_id, anyone, rng)
        return None if strike is None else _with_intent(strike, missed=trigger.kind)

    async def _aim_once(self, fault: Fault, context: FaultContext, rng: Random) -> Strike | None:
        """Resolve the victim at this moment and claim it; None when that is impossible."""
        try:
            strike = await fault.aim(context, rng)
        except SelectorUnresolved:
            return None
        if not fault.shares_victim:
            if any(map(context.touched.get, strike.victims)):
                return None
            context.touched.update(strike.victims)
        return strike

    async def _aim(self, fault_id: int, fault: Fault, rng: Random) -> Strike | None:
        """Resolve the victim, asking again for a while. Returns None in the end, and records the skip unless the
        faults' time is over.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RESOLVE_TIMEOUT_S
        while True:
            try:
                strike = await fault.aim(self._context, rng)
                # No await between the choice and the claim: two faults must not choose the same node. One that may
                # share a node with others leaves it to them, too.
                if fault.shares_victim:
                    return strike
                is_wanted = getattr(fault, "selector", None) == TOUCHED
                if is_wanted or not any(map(self._context.touched.get, strike.victims)):
                    self._context.touched.update(strike.victims)
                    return strike
                reason = f"another fault has touched {', '.join(strike.victims)}"
            except SelectorUnresolved as error:
                reason = str(error)
            if self._time_is_over.is_set():
                return None  # it was not skipped: there was no time left for it
            if self._is_any_overdue():
                deadline = loop.time() + RESOLVE_TIMEOUT_S
            if loop.time() > deadline:
                self._recorder.record(
                    Kind.FAULT_SKIPPED, fault_id=fault_id, fault=fault.name, error=reason
                )
                return None
            await asyncio.sleep(RESOLVE_INTERVAL_S)

    def _is_any_overdue(self) -> bool:
        """Whether a fault in force lasts longer than planned: what it has touched will be free, only later."""
        return any(end < asyncio.get_running_loop().time() for end in self._planned_ends.values())

    async def _strike(
        self, fault_id: int, fault: Fault, strike: Strike, undo_timeout_s: float
    ) -> None:
        about = {"fault_id": fault_id, "fault": fault.name, "targets": strike.victims}
        self._recorder.record(Kind.FAULT_INVOKE, **about, detail=_json(strike.intent))
        self._in_force[fault_id] = f"{fault.name} {','.join(strike.victims)}"
        loop = asyncio.get_running_loop()
        begin = loop.time()
        self._planned_ends[fault_id] = begin + fault.duration_s
        applied = await _apply(strike)
        self._recorder.record(
            Kind.FAULT_APPLIED,
            **about,
            effect=MEASURED if applied.is_effective else NO_EFFECT,
            detail=_json(applied.detail),
        )
        if not fault.shares_victim:
            self._context.struck.update(strike.victims)
        await self._pause_until(begin + fault.duration_s)
        lost: RuntimeFailure | None = None
        try:
            await strike.undo()
        except (NodeExited, FaultLost) as error:
            lost = error  # a broker that cannot start is a result, not the end of the run
        self.healed_at = loop.time()
        if not fault.shares_victim:
            self._context.touched.subtract(strike.victims)
            self._context.struck.subtract(strike.victims)
        del self._in_force[fault_id], self._planned_ends[fault_id]
        healed = (
            await self._verify(strike, undo_timeout_s)
            if lost is None
            else Measured(is_effective=False, detail={_how(lost): str(lost)})
        )
        self._recorder.record(
            Kind.FAULT_HEALED,
            **about,
            effect=VERIFIED if healed.is_effective else NO_EFFECT,
            detail=_json(healed.detail),
        )

    async def _verify(self, strike: Strike, undo_timeout_s: float) -> Measured:
        """Ask until the effect is gone. Another fault may be in the way, so time counts from its end too."""
        loop = asyncio.get_running_loop()
        while True:
            measured = await strike.verify()
            deadline = self._start + self._end_s + undo_timeout_s
            if measured.is_effective or loop.time() > deadline:
                return measured
            await asyncio.sleep(VERIFY_INTERVAL_S)

    async def _pause_until(self, loop_time: float) -> bool:
        """Wait; returns False when the faults' time was over before."""
        delay_s = loop_time - asyncio.get_running_loop().time()
        try:
            await asyncio.wait_for(self._time_is_over.wait(), timeout=max(0.0, delay_s))
        except TimeoutError:
            return True
        return False


def _with_intent(strike: Strike, **columns: str) -> Strike:
    """Add to what the history records of the intent."""
    strike.intent |= columns
    return strike


async def _apply(strike: Strike) -> Measured:
    """Return what was measured; a fault that failed by itself has no effect that anybody knows."""
    try:
        return await strike.apply()
    except FaultLost as error:
        return Measured(is_effective=False, detail={LOST: str(error)})


def _how(lost: RuntimeFailure) -> str:
    return "exited" if isinstance(lost, NodeExited) else LOST


def _json(detail: dict[str, Any]) -> str:
    return json.dumps(detail, sort_keys=True)


def _only_supported(settings: PlanSettings, context: FaultContext) -> PlanSettings:
    """Leave out what runtime and workload cannot do: a plan made for others may be carried out here."""
    missing = context.missing
    kinds = tuple(
        kind for kind in settings.kinds if first_missing(FAULTS[kind].needs, missing) is None
    )
    return replace(settings, kinds=kinds)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The error that explains the others; a single harness failure in most cases."""
    first = group.exceptions[0]
    if isinstance(first, ExceptionGroup):
        return _first(first)
    return first
