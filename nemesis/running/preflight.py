"""Everything that can be wrong with a run is found here, before anything is started or written.

``prepare`` turns the command line into a ``RunRequest``: scenario, seed, plan, mutant, all known to be
sound and within what the runtime can do. ``create_run_directory`` makes its directory.
"""

from __future__ import annotations

import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from secrets import randbits
from typing import Final

import msgspec

from nemesis.checkers.framework.engine import Engine
from nemesis.faults import FAULTS
from nemesis.faults import plan as plans
from nemesis.faults.client_selectors import check_group
from nemesis.faults.clients import ClientFault
from nemesis.faults.plan import Plan
from nemesis.faults.recipes import RECIPES
from nemesis.history.recorder import Recorder
from nemesis.history.run_directory import RunDirectory
from nemesis.history.sources import JUDGED
from nemesis.history.vocabulary.harness import CLEANUP_POLICY
from nemesis.interfaces.brokers import PlantedBugs
from nemesis.interfaces.clients import ClientProcesses
from nemesis.interfaces.disks import LogDirs
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.runtime import Missing, Runtime, first_missing, missing_of
from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running import doctor, run_directories
from nemesis.running.checking_options import (
    INLINE,
    checker_names,
    default_engine,
    engine_of,
    spark_master_of,
)
from nemesis.running.client_processes import processes_of
from nemesis.running.mutant_choice import argument_in, mutant_of_argument
from nemesis.running.simulated.run import runtime_config
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.stored import encode_spec
from nemesis.running.timeout_settings import timeout_settings
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.runtimes.simulation.runtime import UNSUPPORTED as SIMULATION_UNSUPPORTED
from nemesis.scenarios import scenario
from nemesis.scenarios.broker_properties import BrokerProperties, arguments, parse
from nemesis.scenarios.scenario import Scenario
from nemesis.support.choices import choose
from nemesis.support.detection import undetectable
from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.support.paths import short
from nemesis.support.runtime_names import DOCKER, LOCAL, SIMULATION
from nemesis.workloads import WORKLOADS, Workload, WorkloadContext
from nemesis.workloads.base import WorkloadError

SEED_BITS: Final = 32
ALL_FAULTS: Final = "all"
"""In place of names in ``--faults``: every kind that the runtime can do on this machine."""

NO_DEPOSITION: Final = "the end of a session deposes no KRaft controller"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The command line of ``nemesis run``, unchecked; None means: as the scenario says."""

    scenario: str
    store: Path
    target: str | None = None
    target_options: Mapping[str, str] = field(default_factory=dict)
    """By the names of the options: ``{"kafka-version": "3.9.1"}``."""
    runtime: str | None = None
    brokers: int | None = None
    seed: int | None = None
    time_limit_s: float | None = None
    faults: str | None = None
    broker_properties: Sequence[str] = ()
    """Each ``NAME=VALUE``."""
    plan: Path | None = None
    mutant: str | None = None
    """The name of a planted bug, or a file that holds one."""
    checkers: str | None = None
    engine: str | None = None
    """Default: inline for a simulation, which is judged in memory, and without Spark; else spark."""
    spark_master: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A run that can be started."""

    scenario_argument: str
    scenario: Scenario
    seed: int
    plan: Plan
    store: Path
    mutant: ChosenMutant | None
    checkers: list[str] | None
    engine: Engine
    spark_master: str | None
    broker_properties: BrokerProperties = field(default_factory=dict)
    """Those of the command line; the scenario has them already."""
    left_out: Mapping[str, list[str]] = field(default_factory=dict)
    """By the reason, the scenario's kinds of faults and recipes that are not part of the run."""

    @property
    def is_simulated(self) -> bool:
        return RUNTIMES[self.scenario.runtime].real_time is None

    def simulation(self) -> SimulationSpec:
        """Return the same run for the simulator."""
        return SimulationSpec(
            scenario=self.scenario,
            seed=self.seed,
            plan=self.plan,
            mutant=self.mutant,
            checkers=None if self.checkers is None else tuple(self.checkers),
        )

    def missing(self) -> Missing:
        """Return the parts that the runtime does not have for these brokers; raises ``UsageError``.

        The error names a broker property or an option of the workload that is wrong.
        """
        brokers = dict(self.scenario.chosen_target.missing(self.scenario.broker_properties))
        clients = processes_of(_workload_of(self.scenario), self.scenario.workload.name)
        if isinstance(clients, Unsupported):
            brokers[ClientProcesses] = clients
        if self.scenario.log_dirs == 1:
            brokers[LogDirs] = Unsupported("log_dirs is 1 in the scenario")
        if self.is_simulated:
            runtime_config(self.simulation())
            return {**SIMULATION_UNSUPPORTED, **brokers}
        return {**missing_of(self.runtime(self.store)), **brokers}

    def runtime(self, run_directory: Path) -> Runtime:
        """Return the runtime of real processes, not started; raises ``UsageError`` when a broker property is wrong."""
        config = ClusterConfig(
            broker_count=self.scenario.brokers,
            client_count=self.scenario.clients,
            run_directory=run_directory,
            broker_properties=self.scenario.broker_properties,
            log_dirs=self.scenario.log_dirs,
            zookeeper_tick_time_ms=self.scenario.zookeeper.tick_time_ms,
            mutant=argument_in(run_directory, self.mutant),
            seed=self.seed,
            target=self.scenario.target,
            target_options=self.scenario.target_options,
        )
        real_time = RUNTIMES[self.scenario.runtime].real_time
        assert real_time is not None, "a simulated cluster is made by nemesis.running.simulated"
        return real_time.create(config)

    def replay(self, run: RunDirectory) -> str:
        """Return the command that repeats this run: a simulated one exactly, a real one with the same plan."""
        if self.is_simulated:
            return run_directories.replay_command(run)
        parts = ["nemesis", "run", self.scenario_argument, "--seed", str(self.seed)]
        parts += ["--plan", short(run.path / plans.FILE_NAME)]
        parts += ["--target", self.scenario.target, "--runtime", self.scenario.runtime]
        for name, value in self.scenario.target_options.items():
            parts += [f"--{name}"] if value == JUDGED else [f"--{name}", value]
        parts += ["--brokers", str(self.scenario.brokers)]
        parts += ["--time-limit", f"{self.scenario.time_limit_s:g}"]
        parts += arguments(self.broker_properties)
        if self.mutant is not None:
            copy = None if self.mutant.file is None else short(run.mutant_file)
            parts += ["--mutant", copy or self.mutant.name]
        return shlex.join(parts)


def prepare(options: RunOptions) -> RunRequest:
    """Check everything; raises ``UsageError``, ``MissingRequirement`` or ``FaultUnsupported``. Writes nothing."""
    properties = parse(options.broker_properties)
    chosen = scenario.override(
        scenario.load(options.scenario),
        target=options.target,
        target_options=options.target_options,
        runtime=options.runtime,
        brokers=options.brokers,
        time_limit_s=options.time_limit_s,
        kinds=_fault_names(options.faults),
        broker=properties,
    )
    if options.faults is not None and options.plan is not None:
        raise UsageError("--faults and --plan exclude each other: a plan names its faults")
    mutant = mutant_of_argument(options.mutant)
    if chosen.runtime == DOCKER and mutant is not None and mutant.file is not None:
        raise UsageError(
            f"--mutant {options.mutant}: the runtime {DOCKER} plants only bugs of nemesis/mutants, because containers "
            f"do not have the file: choose --runtime {SIMULATION} or {LOCAL}"
        )
    if options.seed is not None and not 0 <= options.seed <= scenario.MAX_SEED:
        raise UsageError(f"--seed is {options.seed}: allowed are 0 to {scenario.MAX_SEED}")
    engine = options.engine or (INLINE if chosen.runtime == SIMULATION else default_engine())
    request = RunRequest(
        scenario_argument=options.scenario,
        scenario=chosen,
        seed=randbits(SEED_BITS) if options.seed is None else options.seed,
        plan=(),
        store=options.store,
        mutant=mutant,
        checkers=checker_names(options.checkers),
        engine=engine_of(engine),
        spark_master=spark_master_of(options.spark_master, engine),
        broker_properties=properties,
    )
    if options.plan is None:
        _require_voters(chosen)
    if options.faults == ALL_FAULTS:
        request = replace(request, scenario=scenario.override(chosen, kinds=_able(request)))
    elif options.faults is None and options.plan is None:
        request = _without_unsupported_faults(request)
    request = _with_plan(request, options.plan)
    _check_workload(chosen)
    _check_clients(request)
    _check_mutant(request)
    _require_support(request, kinds=request.scenario.faults.kinds if options.plan is None else ())
    _check_store(options.store)
    doctor.require(options.store, chosen.runtime)
    return request


def make_ready(request: RunRequest, say: Callable[[str], None]) -> None:
    """Make what target and runtime need and the machine can keep: jars of Kafka, the image of the containers.

    Raises ``MissingRequirement``. ``say`` is told what takes long.
    """
    say_left_out(request, say)
    timeouts = timeout_settings(request.scenario)
    for fault in undetectable(plans.encode(request.plan), timeouts):
        say(f"not detectable: {fault}")
    request.scenario.chosen_target.make_ready(say)
    real_time = RUNTIMES[request.scenario.runtime].real_time
    if real_time is not None:
        real_time.make_ready(say)


def say_left_out(request: RunRequest, say: Callable[[str], None]) -> None:
    """Say which of the scenario's faults and recipes the run leaves out, one sentence for each reason."""
    for reason, names in request.left_out.items():
        say(f"of the scenario's faults and recipes the run leaves out {', '.join(names)}: {reason}")


def _without_unsupported_faults(request: RunRequest) -> RunRequest:
    """Return the request without the scenario's faults and recipes that its cluster cannot have.

    Scenarios name them for other runtimes and targets. A fault that the command line or a plan names is refused
    instead, and so is a scenario of which no fault would be left.
    """
    faults, reasons = request.scenario.faults, _obstacles(request)
    kinds = tuple(name for name in faults.kinds if name not in reasons)
    recipes = tuple(name for name in faults.recipes if name not in reasons)
    if not kinds or not reasons:
        return request
    left_out = defaultdict[str, list[str]](list)
    for name, reason in reasons.items():
        left_out[reason].append(name)
    kept = msgspec.structs.replace(faults, kinds=kinds, recipes=recipes)
    scenario_left = msgspec.structs.replace(request.scenario, faults=kept)
    return replace(request, scenario=scenario_left, left_out=dict(left_out))


def _obstacles(request: RunRequest) -> dict[str, str]:
    """Return by name why faults and recipes of the scenario cannot happen: a recipe lacks what its faults lack."""
    missing, faults = request.missing(), request.scenario.faults
    reasons: dict[str, str] = {}
    for name in faults.kinds:
        if (lacking := first_missing(FAULTS[name].needs, missing)) is not None:
            reasons[name] = lacking.reason
    has_zookeeper = request.scenario.zookeepers > 0
    for name in faults.recipes:
        if RECIPES[name].deposes_by_session and not has_zookeeper:
            reasons[name] = NO_DEPOSITION
        elif lost := [
            kind for kind in faults.kinds if kind in reasons and kind in RECIPES[name].kinds
        ]:
            reasons[name] = reasons[lost[0]]
    return reasons


def _require_support(request: RunRequest, *, kinds: Sequence[str]) -> None:
    """Raise ``FaultUnsupported`` for a fault of the plan, or one of these kinds, that the runtime cannot do."""
    missing = request.missing()
    needed = {name: FAULTS[name].needs for name in kinds}
    for planned in request.plan:
        name = planned.fault.name
        needed[name] = needed.get(name, frozenset()) | planned.fault.own_needs
    unsupported: defaultdict[str, list[str]] = defaultdict(list)
    for name in FAULTS:
        if (lacking := first_missing(needed.get(name, ()), missing)) is not None:
            unsupported[lacking.reason].append(name)
    if any(planned.after is not None for planned in request.plan) and Traces in missing:
        unsupported[missing[Traces].reason].append("after")
    if unsupported:
        refused = ", ".join(f"{', '.join(names)} ({why})" for why, names in unsupported.items())
        raise FaultUnsupported(
            f"the runtime {request.scenario.runtime} cannot do {refused}: it can {', '.join(_able(request))}"
        )


def _able(request: RunRequest) -> tuple[str, ...]:
    """Return the kinds of faults that the runtime can do on this machine."""
    missing = request.missing()
    return tuple(
        name for name, fault in FAULTS.items() if first_missing(fault.needs, missing) is None
    )


def create_run_directory(request: RunRequest, command_line: Sequence[str]) -> RunDirectory:
    """Make the run's directory with ``run.json`` and ``plan.yaml``; raises ``MissingRequirement``."""
    try:
        return run_directories.create_run_directory(
            request,
            request.store,
            command_line,
            simulation=encode_spec(request.simulation()) if request.is_simulated else {},
            left_out=request.left_out,
            replay=request.replay,
        )
    except OSError as error:
        raise MissingRequirement(
            f"the store {request.store} cannot be written: {error.strerror}"
        ) from None


def _fault_names(text: str | None) -> tuple[str, ...] | None:
    """Return the kinds named; None for the scenario's own, and for ``ALL_FAULTS``, which the runtime decides."""
    if text in (None, ALL_FAULTS):
        return None
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(
            f"--faults is {text!r}: allowed are {ALL_FAULTS}, {', '.join(sorted(FAULTS))}"
        )
    for name in names:
        choose(FAULTS, name)
    return names


def _require_voters(chosen: Scenario) -> None:
    """Raise ``UsageError`` when the scenario's recipes strike voters and the cluster has ZooKeeper."""
    wanted = [name for name in chosen.faults.recipes if RECIPES[name].has_voters]
    if wanted and chosen.zookeepers:
        raise UsageError(
            f"the scenario {chosen.name} has the recipes {', '.join(wanted)} for the voters of a KRaft quorum: choose "
            "--target kafka with --kafka-version 4.0.0 or newer"
        )


def _with_plan(request: RunRequest, file: Path | None) -> RunRequest:
    chosen = request.scenario
    if file is None:
        settings = chosen.plan_settings()
        if settings.triggers and Traces in request.missing():
            settings = replace(settings, triggers=())
        plan = plans.derive(
            Random(f"{request.seed}/plan"),
            settings,
            start_s=chosen.phases.warm_up_s,
            end_s=chosen.faults_end_s,
        )
        if not plan:
            raise UsageError(
                f"no fault fits into a time limit of {chosen.time_limit_s:g} s: "
                "raise --time-limit or shorten the scenario's faults.duration_s"
            )
    else:
        plan = plans.read(file)
    plans.check(plan, nodes=chosen.nodes, end_s=chosen.faults_end_s)
    return RunRequest(**{**vars(request), "plan": plan})


def _check_workload(chosen: Scenario) -> None:
    """Raise ``UsageError`` when an option of the workload is wrong, or the brokers are not as it needs them."""
    workload = _workload_of(chosen)
    needs = {
        f"the replication factor of workload {chosen.workload.name}": workload.replication_factor,
        MIN_INSYNC_REPLICAS: chosen.broker_properties.get(MIN_INSYNC_REPLICAS, 1),
    }
    for setting, least in needs.items():
        if isinstance(least, int) and chosen.brokers < least:
            raise UsageError(
                f"--brokers is {chosen.brokers}: {setting} is {least}, so at least {least} brokers are needed"
            )
    policy = str(chosen.broker_properties.get(CLEANUP_POLICY, "delete"))
    if "compact" in policy and not chosen.workload_options.get("keys"):
        # Without keys in the history no checker can decide which records the cleaner may remove.
        raise UsageError(
            f"{CLEANUP_POLICY} of the brokers: expected delete, got {policy}; the option keys of a workload lets its "
            "topics be compacted"
        )


def _workload_of(chosen: Scenario) -> Workload:
    """Build the workload without a cluster; raises ``UsageError`` when an option is wrong."""
    nobody = WorkloadContext(
        bootstrap=[], client_hosts=[], recorder=_no_recorder, rng=Random("preflight")
    )
    try:
        return WORKLOADS[chosen.workload.name](nobody, chosen.workload_options)
    except WorkloadError as error:
        raise UsageError(str(error)) from None


def _check_clients(request: RunRequest) -> None:
    """Raise ``UsageError`` when the plan names client processes or groups that the workload does not have."""
    chosen = request.scenario
    clients = processes_of(_workload_of(chosen), chosen.workload.name)
    if isinstance(clients, Unsupported):
        return
    for group in chosen.faults.groups:
        check_group(group, clients)
    for planned in request.plan:
        if isinstance(planned.fault, ClientFault):
            planned.fault.check_clients(clients)


def _no_recorder(process: str) -> Recorder:
    def refuse(line: bytes) -> None:
        raise AssertionError(f"{process} recorded {line!r} before the run")

    return Recorder(refuse, process=process, clock=time.monotonic_ns)


def _check_mutant(request: RunRequest) -> None:
    """Raise ``UsageError`` for a bug that is to be planted in brokers that plant none."""
    bugs = request.scenario.chosen_target.missing({}).get(PlantedBugs)
    if request.mutant is not None and bugs is not None:
        raise UsageError(
            f"--mutant {request.mutant.name}: the target {request.scenario.target} has none: {bugs.reason}"
        )


def _check_store(store: Path) -> None:
    try:
        store.resolve()
    except (OSError, RuntimeError):  # which of the two depends on the version of Python
        raise MissingRequirement(
            f"the store {store}: expected a directory, got a loop of links: choose another --store"
        ) from None
    if store.exists() and not store.is_dir():
        raise MissingRequirement(f"the store {store} is a file: choose a directory with --store")
