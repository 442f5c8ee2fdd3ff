"""Scenarios: one value on each axis, as a YAML file.

Ours are in ``nemesis/scenarios/``; users bring their own. A file is validated as a whole before
anything is started or written: an unknown key, a wrong type or an absurd number is one sentence
that names the file and the place in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml
from msgspec import Meta

from nemesis.faults import DEFAULT_KINDS, FAULTS, traced_trigger
from nemesis.faults.base import DrawRange
from nemesis.faults.plan import PlanSettings
from nemesis.faults.recipes import CLASSIC, RECIPES
from nemesis.registry import unknown
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios.broker_properties import BrokerProperties
from nemesis.support.choices import choose, one_of
from nemesis.support.errors import UsageError
from nemesis.support.runtime_names import DOCKER, LOCAL, SIMULATION
from nemesis.targets import TARGETS, Target
from nemesis.targets.base import controllers_of, uses_zookeeper
from nemesis.workloads import WORKLOADS

ENSEMBLE = 3
"""Members of ZooKeeper in containers, as the compose file has them."""
MIN_TIME_LIMIT_S = 15.0
MAX_TIME_LIMIT_S = 86_400.0
MAX_BROKERS = 15
MAX_LOG_DIRS = 8
MAX_SEED = 2**63 - 1
MAX_WEIGHT = 100

SAFE_BROKER: Final[Mapping[str, int | bool]] = MappingProxyType(
    {
        "zookeeper.session.timeout.ms": 2000,
        "replica.lag.time.max.ms": 1500,
        "replica.fetch.wait.max.ms": 100,
        "replica.fetch.backoff.ms": 100,
        "replica.socket.timeout.ms": 2000,
        "controller.socket.timeout.ms": 2000,
        "unclean.leader.election.enable": False,
    }
)
"""Broker properties where a scenario file does not set them: Kafka's own time-outs outlast most faults."""

Seconds = Annotated[float, Meta(ge=0.0, le=600.0)]
Expectation = Literal["noticed", "unnoticed"]
Latency = Literal["calm", "slow", "spiky"]
PositiveSeconds = Annotated[float, Meta(gt=0.0, le=600.0)]
Brokers = Annotated[int, Meta(ge=1, le=MAX_BROKERS)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every part of a scenario."""


class Phases(_Strict, frozen=True, kw_only=True):
    """How long each phase lasts, in seconds. Warm-up, faults and heal together take the time limit."""

    warm_up_s: Seconds = 5.0
    """Seconds from the start of the clients to the first fault."""
    heal_s: PositiveSeconds = 6.0
    """The last seconds of the time limit, for undoing the last faults. If that takes longer, the run takes longer."""
    quiet_s: Seconds = 2.0
    """Seconds after the heal in which the clients still work."""
    final_reads_s: PositiveSeconds = 10.0
    """The most seconds for reading every partition to its end. If they are not enough, the run is `unknown`."""
    convergence_s: PositiveSeconds = 20.0
    """The cluster must recover within these seconds from the end of the last fault. Else `convergence` is `invalid`."""


class ZooKeeperSettings(_Strict, frozen=True, kw_only=True):
    """The ensemble of a target that uses ZooKeeper."""

    tick_time_ms: Annotated[int, Meta(ge=50, le=60_000)] = 500
    """`tickTime` of ZooKeeper, in milliseconds. A session time-out is at least two ticks."""


class WorkloadSettings(_Strict, frozen=True, kw_only=True):
    """What clients do."""

    name: str = "produce-consume"
    """The name of a workload of `nemesis list`."""
    options: dict[str, Any] = {}
    """Options of the workload, from its table below."""


class FaultSettings(_Strict, frozen=True, kw_only=True):
    """From what the fault plan is drawn."""

    kinds: Annotated[tuple[str, ...], Meta(min_length=1)] = DEFAULT_KINDS
    """The kinds of faults that may strike: names of `nemesis list`; `docs/faults.md` describes them."""
    recipes: tuple[str, ...] = CLASSIC
    """Recipes that may be drawn: faults that overlap on purpose; `docs/faults.md` describes them."""
    after: tuple[str, ...] = ()
    """Events, such as `isr-join`. Half of the faults outside of recipes wait for one, and are skipped without it."""
    duration_s: tuple[PositiveSeconds, PositiveSeconds] = (5.0, 8.0)
    """The shortest and the longest duration of a fault, in seconds."""
    gap_s: tuple[Seconds, Seconds] = (2.5, 4.0)
    """The shortest and the longest time between the end of a fault and the next fault, in seconds."""
    weights: dict[str, Annotated[int, Meta(ge=1, le=MAX_WEIGHT)]] = {}
    """`{kill: 3}` draws `kill` three times as often as a kind or recipe without a weight."""
    groups: tuple[str, ...] = ()
    """Groups, such as `group-0`. Half of the faults that draw a broker strike the coordinator of one instead."""


class Objectives(_Strict, frozen=True, kw_only=True):
    """The longest outages that you accept. Each objective is a property with a verdict of its own."""

    leaderless_s: PositiveSeconds | None = None
    """The most seconds for which a partition may be without a leader (property `objective-leaderless`)."""
    controllerless_s: PositiveSeconds | None = None
    """The most seconds for which the cluster may be without a controller (property `objective-controllerless`)."""
    unwritable_s: PositiveSeconds | None = None
    """The most seconds in which all writes to a partition fail or time out (property `objective-unwritable`)."""


class SimulationSettings(_Strict, frozen=True, kw_only=True):
    """What is different on the runtime ``simulation``, where time costs what happens in it, not what passes."""

    zookeepers: Annotated[int, Meta(ge=1, le=7)] = 3
    """The number of ZooKeeper servers."""
    broker: dict[str, str | int | bool | list[str]] = {}
    """Broker properties that replace those of the scenario in simulation."""
    options: dict[str, Any] = {}
    """Options of the workload that replace those of the scenario in simulation."""
    latency: Latency = "calm"
    """Latency between nodes: `calm` 50 to 500 µs, `slow` 2 to 20 ms, `spiky` as `calm`, rarely 100 ms more."""


class Scenario(_Strict, frozen=True, kw_only=True):
    """Everything that a run needs to know but its seed and its plan."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    """Lower-case letters, digits and hyphens. Runs are stored under this name."""
    summary: str = ""
    """One line that `nemesis list` prints."""
    target: str = "reference"
    """The system under test: the name of a target of `nemesis list`."""
    target_options: dict[str, str] = {}
    """Options of the target, named as on the command line: ``kafka-version: "3.9.1"``."""
    runtime: str = LOCAL
    """Where the cluster runs: `local`, `docker` or `simulation`."""
    brokers: Brokers = 3
    """The number of brokers."""
    log_dirs: Annotated[int, Meta(ge=1, le=MAX_LOG_DIRS)] = 1
    """The number of log directories of each broker. In containers a broker always has one."""
    clients: Annotated[int, Meta(ge=1, le=100)] = 4
    """The number of client nodes, each with its own network address. Producers and consumers are spread over them."""
    time_limit_s: Annotated[float, Meta(ge=MIN_TIME_LIMIT_S, le=MAX_TIME_LIMIT_S)] = 60.0
    """Seconds for warm-up, faults and heal together. Final reads and checks follow."""
    phases: Phases = Phases()
    """Durations of the phases."""
    zookeeper: ZooKeeperSettings = ZooKeeperSettings()
    """Settings of the ZooKeeper servers."""
    broker: dict[str, str | int | bool | list[str]] = {}
    """Broker properties under Kafka's names. They replace those of the table above."""
    workload: WorkloadSettings = WorkloadSettings()
    """What the clients do."""
    faults: FaultSettings = FaultSettings()
    """The faults from which the plan is drawn."""
    simulation: SimulationSettings = SimulationSettings()
    """Settings that hold in simulation only."""
    objectives: Objectives = Objectives()
    """The longest outages that you accept; a longer one makes the run `invalid`."""
    expect: Expectation = "noticed"
    """`unnoticed`: the run may be `valid` even if every fault is too short for the cluster to notice."""

    @property
    def chosen_target(self) -> Target:
        """The target with its options; raises ``UsageError`` when it does not have one of them."""
        return choose(TARGETS, self.target).with_options(self.target_options)

    @property
    def zookeepers(self) -> int:
        """How many ZooKeeper servers the runtime starts; none for a target that needs none."""
        if not uses_zookeeper(self.chosen_target):
            return 0
        counts = {LOCAL: 1, DOCKER: ENSEMBLE, SIMULATION: self.simulation.zookeepers}
        return counts[self.runtime]

    @property
    def broker_properties(self) -> dict[str, str | int | bool | list[str]]:
        """Broker properties on this runtime, under Kafka's names."""
        special = self.simulation.broker if self.runtime == SIMULATION else {}
        return {**self.broker, **special}

    @property
    def workload_options(self) -> dict[str, Any]:
        """The workload's options on this runtime."""
        special = self.simulation.options if self.runtime == SIMULATION else {}
        return {**self.workload.options, **special}

    @property
    def faults_end_s(self) -> float:
        """When the faults' time is over, in seconds from the start of the workload."""
        return self.time_limit_s - self.phases.heal_s

    @property
    def nodes(self) -> frozenset[str]:
        """The names of the brokers, of the ZooKeeper servers, and of KRaft controllers that are not brokers."""
        counts = {
            "broker": self.brokers,
            "zookeeper": self.zookeepers,
            "controller": controllers_of(self.chosen_target),
        }
        return frozenset(
            f"{role}-{number}" for role, count in counts.items() for number in range(1, count + 1)
        )

    def plan_settings(self) -> PlanSettings:
        """Return how plans are drawn from a seed."""
        return PlanSettings(
            kinds=self.faults.kinds,
            recipes=self.faults.recipes,
            durations=DrawRange(*self.faults.duration_s),
            gaps=DrawRange(*self.faults.gap_s),
            nodes=self.nodes,
            triggers=self.faults.after,
            weights=self.faults.weights,
            groups=self.faults.groups,
        )


def names() -> list[str]:
    """Return the scenarios that come with nemesis."""
    files = resources.files("nemesis.scenarios").iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def names_for(target: str) -> list[str]:
    """Return the scenarios that come with nemesis and are for this target, unless the command line names another."""
    return [name for name in names() if load(name).target == target]


def load(name_or_path: str) -> Scenario:
    """Return a scenario of ours by its name, or a user's by its path; raises ``UsageError``."""
    if name_or_path in names():
        text = (resources.files("nemesis.scenarios") / f"{name_or_path}.yaml").read_text("utf-8")
        return parse(text, where=f"the scenario {name_or_path}")
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"{unknown('scenario', name_or_path, names())}, or the path of a .yaml file"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the scenario {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the scenario {path} is not a text file in UTF-8") from None
    return parse(text, where=f"the scenario {path}")


def parse(text: str, *, where: str) -> Scenario:
    """Return the scenario that the YAML text states; raises ``UsageError`` that begins with ``where``."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{where} is not valid YAML: {reason}") from None
    except RecursionError:
        raise UsageError(f"{where} is wrong: it is nested too deeply") from None
    try:
        # YAML's integers are fine where seconds are meant; nothing else is converted.
        scenario = msgspec.convert(with_present_keys(data), Scenario, strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where} is wrong: {error}") from None
    scenario = msgspec.structs.replace(scenario, broker={**SAFE_BROKER, **scenario.broker})
    try:
        check(scenario)
    except UsageError as error:
        raise UsageError(f"{where} is wrong: {error}") from None
    return scenario


def with_present_keys(data: object) -> object:
    """Return the data of a scenario with keys that have been renamed under their present names.

    ``faults.episodes`` is called ``faults.recipes`` now; scenarios and ``run.json`` files of before keep the old key.
    """
    if not isinstance(data, dict):
        return data
    faults = data.get("faults")
    if not isinstance(faults, dict) or "episodes" not in faults or "recipes" in faults:
        return data
    present = {("recipes" if key == "episodes" else key): value for key, value in faults.items()}
    return {**data, "faults": present}


def check(scenario: Scenario) -> None:
    """Raise ``UsageError`` when a name is unknown or numbers contradict one another."""
    _ = scenario.chosen_target
    choose(RUNTIMES, scenario.runtime)
    choose(WORKLOADS, scenario.workload.name)
    for kind in scenario.faults.kinds:
        choose(FAULTS, kind)
    for recipe in scenario.faults.recipes:
        one_of("recipe", recipe, RECIPES)
    for trigger in scenario.faults.after:
        traced_trigger.parse(trigger)
    for weighed in scenario.faults.weights:
        one_of("fault or recipe in faults.weights", weighed, [*FAULTS, *RECIPES])
    for setting, (low, high) in (
        ("duration_s", scenario.faults.duration_s),
        ("gap_s", scenario.faults.gap_s),
    ):
        if low > high:
            raise UsageError(
                f"faults.{setting} is [{low:g}, {high:g}]: the first must not exceed the second"
            )
    shortest_s = scenario.phases.warm_up_s + scenario.phases.heal_s
    if scenario.time_limit_s <= shortest_s:
        raise UsageError(
            f"the time limit of {scenario.time_limit_s:g} s is too short: warm-up and heal alone take "
            f"{shortest_s:g} s"
        )


def override(
    scenario: Scenario,
    *,
    target: str | None = None,
    target_options: Mapping[str, str] | None = None,
    runtime: str | None = None,
    brokers: int | None = None,
    time_limit_s: float | None = None,
    kinds: tuple[str, ...] | None = None,
    broker: BrokerProperties | None = None,
) -> Scenario:
    """Return the scenario with the command line's values in place of the file's; raises ``UsageError``.

    Properties of ``broker`` hold on every runtime. Options of another target than the file's are dropped, and those of
    the target that are left out get their defaults.
    """
    if brokers is not None and not 1 <= brokers <= MAX_BROKERS:
        raise UsageError(f"--brokers is {brokers}: allowed are 1 to {MAX_BROKERS}")
    if time_limit_s is not None and not MIN_TIME_LIMIT_S <= time_limit_s <= MAX_TIME_LIMIT_S:
        raise UsageError(
            f"--time-limit is {time_limit_s:g}: allowed are {MIN_TIME_LIMIT_S:g} to "
            f"{MAX_TIME_LIMIT_S:g} seconds"
        )
    same_target = target in (None, scenario.target)
    options = {**(scenario.target_options if same_target else {}), **(target_options or {})}
    changed = msgspec.structs.replace(
        scenario,
        target=scenario.target if target is None else target,
        target_options=options,
        runtime=scenario.runtime if runtime is None else runtime,
        brokers=scenario.brokers if brokers is None else brokers,
        time_limit_s=scenario.time_limit_s if time_limit_s is None else time_limit_s,
        faults=scenario.faults
        if kinds is None
        else msgspec.structs.replace(scenario.faults, kinds=kinds),
        broker={**scenario.broker, **(broker or {})},
        simulation=msgspec.structs.replace(
            scenario.simulation, broker={**scenario.simulation.broker, **(broker or {})}
        ),
    )
    check(changed)
    return msgspec.structs.replace(changed, target_options=changed.chosen_target.options)
