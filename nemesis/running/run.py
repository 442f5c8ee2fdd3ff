"""One run, from an empty directory to a recorded history.

The phases, each an event of the history: start, warm-up, faults, heal, quiet, final-reads, convergence,
end. The time limit counts from the start of the workload to the end of the heal. Every phase is
bounded, whatever the cluster does.

Whatever happens (an error, Ctrl-C), the cluster is stopped and what was recorded stays: ``nemesis
check`` judges it. An error of the harness is never a verdict. Checking and reporting are
``judge``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from nemesis.faults import administrator
from nemesis.faults.base import FaultContext
from nemesis.faults.cluster_view import ClusterView
from nemesis.faults.conductor import Conductor
from nemesis.faults.plan import Plan
from nemesis.faults.quorum_view import QuorumView
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.history.events import INITIAL_TOPICS, Kind
from nemesis.history.sources import EventSource
from nemesis.interfaces.cluster import bootstrap
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import supported
from nemesis.running.background_settings import background_settings
from nemesis.running.client_processes import processes_of
from nemesis.running.convergence import ConvergenceWatch
from nemesis.running.lateness import Load, machine_load, trace_lateness
from nemesis.running.offset_samples import OffsetSamples
from nemesis.running.offsets_at_rest import OffsetsAtRest
from nemesis.running.progress import Status
from nemesis.running.quorum_samples import record_quorum
from nemesis.running.record import Record
from nemesis.running.stored_logs import liveness, record_stored_logs
from nemesis.running.timeout_settings import timeout_settings
from nemesis.scenarios.scenario import Scenario
from nemesis.support.errors import HarnessError
from nemesis.workloads import WORKLOADS, Workload, WorkloadContext
from nemesis.workloads.base import NotReadyError, WorkloadError

LAG_PROBE_INTERVAL_S = 0.05
STATUS_INTERVAL_S = 0.5
STATUS_WINDOW_S = 3.0
SETUP_TIMEOUT_S = 20.0
"""For the initial topics, beyond the time for convergence."""
UNDO_GRACE_S = 20.0
"""Beyond the heal phase, for the proof that a fault is undone when the machine is slow."""


@dataclass(slots=True)
class Ticker:
    """What the run tells those who watch it."""

    show: Callable[[Status], None]
    status: Status = field(default_factory=Status)


class Run:
    """One run of a scenario with one plan on one runtime. ``execute`` once."""

    def __init__(
        self,
        record: Record,
        scenario: Scenario,
        *,
        seed: int,
        plan: Plan,
        runtime: Runtime,
        epoch_ms: int,
        show: Callable[[Status], None] | None,
        on_faults_over: Callable[[], None] = lambda: None,
        permits: Callable[[str, int], bool] | None = None,
        redraws: bool = True,
        lag_probe_s: float = LAG_PROBE_INTERVAL_S,
        load: Load = machine_load,
    ) -> None:
        """``epoch_ms`` is the time of day, in milliseconds since 1970, at which the loop's time was zero.

        ``show`` is called a few times a second, if anybody looks; ``on_faults_over`` once, after the faults.

        ``permits`` says which client operations are issued (``WorkloadContext.permits``); all of them without it.
        ``redraws``: whether another fault takes the place of one whose target was not there. ``lag_probe_s``: how
        often the lag of this loop is looked at. ``load``: what the machine did (``lateness``).
        """
        self._record = record
        self._scenario = scenario
        self._seed = seed
        self._plan = plan
        self._runtime = runtime
        self._epoch_ms = epoch_ms
        self._is_watched = show is not None
        self._ticker = Ticker(show or (lambda _status: None))
        self._on_faults_over = on_faults_over
        self._permits = permits
        self._redraws = redraws
        self._lag_probe_s = lag_probe_s
        self._load = load
        self._harness = record.recorder("harness", "harness")
        self._started_at = 0.0
        self._at_the_end: dict[str, bool] = {}
        """Which brokers were alive; empty when the run did not come so far."""

    @property
    def operations(self) -> int:
        """Client operations that were completed."""
        return self._ticker.status.operations

    async def execute(self) -> None:
        """Run all phases; returns with the cluster stopped.

        Raises ``RuntimeFailure``, ``HarnessError`` or ``WorkloadError``-turned-``HarnessError`` when the harness
        fails; cancelled, it stops the cluster and passes the cancellation on.
        """
        try:
            lateness = trace_lateness(self._harness, self._load, self._lag_probe_s)
            async with self._background(lateness):
                self._phase("start")
                self._record_settings()
                try:
                    await self._runtime.lifecycle.start()
                    await self._run_cluster()
                except WorkloadError as error:
                    raise HarnessError(f"the workload failed: {error}") from error
                finally:
                    await _shielded(self._stop)
        finally:
            self._record.close()

    async def _run_cluster(self) -> None:
        scenario, phases = self._scenario, self._scenario.phases
        async with AsyncExitStack() as stack:
            view = await stack.enter_async_context(self._view())
            workload = self._workload()
            self._phase("warm-up")
            try:
                await workload.setup(SETUP_TIMEOUT_S + phases.convergence_s)
            except NotReadyError as error:
                await self._conclude_unready(view, error)
                return
            conductor = Conductor(
                FaultContext.of(
                    self._runtime,
                    view,
                    self._record.recorder(administrator.NAME, "nemesis"),
                    client_processes=processes_of(workload, scenario.workload.name),
                ),
                self._record.recorder("nemesis", "nemesis"),
                plan=self._plan,
                settings=scenario.plan_settings(),
                seed=self._seed,
                redraws=self._redraws,
            )
            if self._is_watched:
                await stack.enter_async_context(
                    self._background(self._watch_status(workload, view, conductor))
                )
            self._started_at = asyncio.get_running_loop().time()
            workload.start()
            is_sampled = EventSource.REPLICA_SAMPLES in scenario.chosen_target.observes
            if is_sampled and isinstance(view, ZooKeeperView):
                samples = OffsetSamples(
                    self._runtime, view, self._harness, rng=Random(f"{self._seed}/offset-samples")
                )
                await stack.enter_async_context(self._background(samples.record()))
            if isinstance(view, QuorumView):
                await stack.enter_async_context(
                    self._background(record_quorum(view, self._harness))
                )
            try:
                watch = ConvergenceWatch(
                    self._runtime, view, self._harness, Random(f"{self._seed}/convergence")
                )
                await self._break(conductor, watch, stack)
                self._phase("quiet")
                await asyncio.sleep(phases.quiet_s)
            finally:
                await workload.stop()
            self._phase("final-reads")
            await workload.final_reads(phases.final_reads_s)
            self._phase("convergence")
            await watch.finish(phases.convergence_s)
            await OffsetsAtRest(
                self._runtime,
                view,
                self._harness,
                settings=timeout_settings(scenario),
                rng=Random(f"{self._seed}/offsets-at-rest"),
            ).record()
            self._phase("end")
            self._at_the_end = liveness(self._runtime)

    async def _conclude_unready(self, view: ClusterView, error: NotReadyError) -> None:
        """Record that the cluster was not ready before the first fault, and what its state is; the run ends then."""
        watch = ConvergenceWatch(
            self._runtime, view, self._harness, Random(f"{self._seed}/convergence")
        )
        self._phase("convergence")
        self._harness.record(
            Kind.CONVERGENCE,
            check=INITIAL_TOPICS,
            error=str(error),
            duration_ms=round((SETUP_TIMEOUT_S + self._scenario.phases.convergence_s) * 1000),
        )
        async with self._background(watch.watch()):
            await watch.finish(0.0)
        self._phase("end")
        self._at_the_end = liveness(self._runtime)

    async def _break(
        self, conductor: Conductor, watch: ConvergenceWatch, stack: AsyncExitStack
    ) -> None:
        """Warm-up, faults and heal: the workload's time limit. The watch begins at the heal and lasts as the stack."""
        scenario, phases, start = self._scenario, self._scenario.phases, self._started_at
        end_s = scenario.faults_end_s
        conducted = asyncio.get_running_loop().create_task(
            conductor.conduct(
                start=start, end_s=end_s, undo_timeout_s=phases.heal_s + UNDO_GRACE_S
            ),
            name="conductor",
        )
        try:
            for name, until_s in (("faults", phases.warm_up_s), ("heal", end_s)):
                await self._until(start + until_s, conducted)
                self._phase(name)
            await stack.enter_async_context(self._background(watch.watch()))
            self._on_faults_over()
            await conducted
            watch.healed(conductor.healed_at)
            await self._until(start + scenario.time_limit_s)
        finally:
            conducted.cancel()
            with suppress(asyncio.CancelledError):
                await conducted

    async def _until(self, loop_time: float, task: asyncio.Task[None] | None = None) -> None:
        """Wait; a failure of the task ends the wait and is raised."""
        delay_s = max(0.0, loop_time - asyncio.get_running_loop().time())
        if task is None:
            await asyncio.sleep(delay_s)
            return
        done, _ = await asyncio.wait([task], timeout=delay_s)
        if done and (error := task.exception()) is not None:
            raise error
        if done:  # no fault is left, the phase still takes its time
            await self._until(loop_time)

    async def _stop(self) -> None:
        """End the cluster and bring its records in; a failure to collect must not leave processes behind."""
        self._ticker.status.phase = "stop"
        self._ticker.show(self._ticker.status)
        await self._runtime.lifecycle.stop()
        await self._runtime.lifecycle.collect()
        await record_stored_logs(self._runtime, self._harness, self._at_the_end)

    @asynccontextmanager
    async def _view(self) -> AsyncIterator[ClusterView]:
        """See the cluster through ZooKeeper, or through its quorum."""
        runtime = self._runtime
        if not runtime.cluster.zookeepers:
            rng = Random(f"{self._seed}/quorum-view")
            yield QuorumView(runtime.cluster, rng, supported(runtime.processes).is_alive)
            return
        async with supported(runtime.ensemble).admin() as zookeeper:
            yield ZooKeeperView(zookeeper)

    def _workload(self) -> Workload:
        runtime, scenario = self._runtime, self._scenario
        context = WorkloadContext(
            bootstrap=[(address.host, address.port) for address in bootstrap(runtime.cluster)],
            client_hosts=[
                runtime.cluster.client_host(client) for client in runtime.cluster.clients
            ],
            recorder=lambda process: self._record.recorder(process, "clients"),
            rng=Random(f"{self._seed}/workload"),
            codec=runtime.cluster.codec,
            epoch_ms=self._epoch_ms,
        )
        if self._permits is not None:
            context = replace(context, permits=self._permits)
        return WORKLOADS[scenario.workload.name](context, scenario.workload_options)

    def _record_settings(self) -> None:
        for setting, duration_ms in timeout_settings(self._scenario).items():
            self._harness.record(Kind.TIMEOUT_SETTING, setting=setting, duration_ms=duration_ms)
        for setting, number in background_settings(self._scenario).items():
            self._harness.record(Kind.BROKER_PROPERTY, setting=setting, count=number)

    def _phase(self, name: str) -> None:
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        self._harness.record(Kind.PHASE, phase=name, wall_ms=self._epoch_ms + now_ms)
        self._record.phase(name)
        self._ticker.status.phase = name
        self._ticker.show(self._ticker.status)

    # -- background tasks ---------------------------------------------------------------------------

    @asynccontextmanager
    async def _background(self, work: Any) -> AsyncIterator[None]:
        """Run a coroutine beside the block; its own failure is the harness's."""
        task = asyncio.get_running_loop().create_task(work)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch_status(
        self, workload: Workload, view: ClusterView, conductor: Conductor
    ) -> None:
        loop, status = asyncio.get_running_loop(), self._ticker.status
        window: list[tuple[float, int]] = []
        while True:
            now = loop.time()
            window = [
                (looked_at, count)
                for looked_at, count in window
                if now - looked_at <= STATUS_WINDOW_S
            ]
            window.append((now, workload.operations))
            (first_at, first), (last_at, last) = window[0], window[-1]
            status.operations = workload.operations
            status.operations_per_s = (last - first) / max(0.001, last_at - first_at)
            status.elapsed_s = max(0.0, now - self._started_at) if self._started_at else 0.0
            status.faults = conductor.in_force
            with suppress(HarnessError):  # the display is not worth a run
                owner, status.controller_epoch = await view.controller()
                status.controller = "none" if owner is None else str(owner.broker_id)
            self._ticker.show(status)
            await asyncio.sleep(STATUS_INTERVAL_S)


async def _shielded(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Finish the work even when this task is cancelled meanwhile; the cancellation is passed on afterwards.

    Where no loop runs, because a run that was broken off is taken down, nothing is begun: RuntimeError.
    """
    task = asyncio.get_running_loop().create_task(work())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except (RuntimeFailure, HarnessError, OSError):
            break
    task.result()
    if cancelled is not None:
        raise cancelled
