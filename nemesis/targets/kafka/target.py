"""Unmodified brokers of Apache Kafka as a target, each a JVM that ``nemesis.runtimes.kafka_launcher`` starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from nemesis.history.sources import ALL_SOURCES, JUDGED, OF_QUORUM, EventSource
from nemesis.interfaces.brokers import (
    BrokerEpochs,
    DiskCommands,
    PlantedBugs,
    SteadyStart,
)
from nemesis.interfaces.processes import BrokerMembership
from nemesis.interfaces.runtime import Missing
from nemesis.interfaces.traces import Traces
from nemesis.interfaces.unsupported import Unsupported
from nemesis.support.errors import UsageError
from nemesis.support.kafka_logging import REPLICA_FILE, has_log4j_2
from nemesis.support.node_names import is_controller, node_of
from nemesis.support.source_address import source_address_library
from nemesis.targets.base import (
    CONTROLLERS,
    PLAINTEXT,
    BrokerEndpoint,
    BrokerProgram,
    listener_properties,
    refuse_options,
    refuse_runtime_properties,
)
from nemesis.targets.kafka.installation import Installation, cached, fetch, installed_in
from nemesis.targets.kafka.properties import require_known, translated
from nemesis.targets.kafka.releases import DEFAULT_VERSION, RELEASES, Release, find_release
from nemesis.targets.kafka.stored_classes import store_classes, stored_classes

CONTROLLER: Final = "CONTROLLER"
"""The listener of a KRaft node for controllers and brokers."""
BROKER_ROLE: Final = "broker"
CONTROLLER_ROLE: Final = "controller"
MOST_CONTROLLERS: Final = 7
VERSION: Final = "kafka-version"
HOME: Final = "kafka-home"
BROKER_LOGS: Final = EventSource.BROKER_LOGS.value
MEMORY: Final = "768m"
"""Of a container: heap, classes, compiled code, stacks of threads and buffers take about 450 MB."""
NO_DISK: Final = Unsupported("Kafka brokers do not write through the harness's disk")
NO_TRACES: Final = Unsupported("Kafka brokers write no traces")
NO_STEADY_START: Final = Unsupported(
    "Kafka exits when its session ends while it starts: the harness starts it again, as a supervisor would"
)
FIXED_VOTERS: Final = Unsupported("the voters of the KRaft quorum are fixed")
NO_EPOCHS: Final = Unsupported("KRaft brokers do not report in which epoch they are registered")
NO_BUGS: Final = Unsupported("bugs are planted in the reference only")


class KafkaTarget:
    """One version of Kafka, from the cache or from a directory of the user's."""

    name = "kafka"

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        home: Path | None = None,
        controllers: int = 0,
        *,
        reads_broker_logs: bool = False,
    ) -> None:
        """Raises ``UsageError`` for a version that is not in the table of releases, or whose logs cannot be read.

        ``controllers``: how many KRaft controllers run apart from the brokers; 0: each broker is one.
        """
        self._release = find_release(version)
        self._version = version
        self._home = home
        self._controllers = controllers
        self._reads_broker_logs = reads_broker_logs
        if reads_broker_logs:
            _require_broker_logs(self._release, version, home)

    @property
    def observes(self) -> frozenset[EventSource]:
        """Everything but traces; with KRaft the logs of the quorum instead of ZooKeeper's, and no samples of replicas.

        A sample needs the ISR as it certainly is at that time, and a broker's metadata may be old. What brokers log of
        their replicas is read if the option asks for it.
        """
        shown = frozenset(ALL_SOURCES) - {EventSource.TRACES}
        if self._reads_broker_logs:
            shown |= {EventSource.BROKER_LOGS}
        if self._release.uses_zookeeper:
            return shown
        unseen = {EventSource.METADATA_LOG, EventSource.REPLICA_SAMPLES}
        return shown - unseen | OF_QUORUM

    @property
    def options(self) -> dict[str, str]:
        home = {} if self._home is None else {HOME: str(self._home)}
        apart = {CONTROLLERS: str(self._controllers)} if self._controllers else {}
        logs = {BROKER_LOGS: JUDGED} if self._reads_broker_logs else {}
        return {VERSION: self._version, **home, **apart, **logs}

    def with_options(self, options: Mapping[str, str]) -> Self:
        """Return the target with other values of ``options``; raises ``UsageError``."""
        refuse_options(self.name, options, [VERSION, HOME, CONTROLLERS, BROKER_LOGS])
        controllers = _controllers(options.get(CONTROLLERS, "0"))
        version, home = _chosen_release(options)
        if controllers and find_release(version).uses_zookeeper:
            raise UsageError(
                f"--{CONTROLLERS}: Kafka {version} runs with ZooKeeper and has no controllers of its own: "
                f"leave it out, or choose --{VERSION} 4.0.0 or newer"
            )
        reads_logs = _reads_logs(options)
        return type(self)(version, home, controllers, reads_broker_logs=reads_logs)

    def make_ready(self, say: Callable[[str], None]) -> None:
        """Fetch the jars when they are not in the cache, compile the library that binds source addresses, and store
        the classes of a broker, without which it only starts more slowly.
        """
        source_address_library()
        installation = fetch(self._version, say) if self._home is None else self._installation()
        store_classes(installation.jars, say, with_quorum=not self._release.uses_zookeeper)

    def broker_properties(
        self, endpoint: BrokerEndpoint, properties: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the configuration, every value a text; Kafka itself checks most values when it starts."""
        refuse_runtime_properties(properties)
        _refuse_commas(endpoint.log_dirs)
        own = _with_zookeeper if self._release.uses_zookeeper else _with_quorum
        is_logged = self._reads_broker_logs and not is_controller(node_of(endpoint.broker_id))
        logs = {REPLICA_FILE: str(endpoint.trace_file)} if is_logged and endpoint.trace_file else {}
        return {
            **translated(properties, self._release),
            **own(endpoint, properties),
            "log.dirs": ",".join(map(str, endpoint.log_dirs)),
            **logs,
        }

    def missing(self, properties: Mapping[str, object]) -> Missing:
        """Return the harness's disks, traces, planted bugs, and starts that a lost session does not end.

        Raises ``UsageError`` for properties that brokers cannot have.
        """
        require_known(properties, self._release)
        missing: Missing = {
            DiskCommands: NO_DISK,
            Traces: NO_TRACES,
            PlantedBugs: NO_BUGS,
            SteadyStart: NO_STEADY_START,
        }
        if self._release.uses_zookeeper:
            return missing
        return {
            **missing,
            BrokerMembership: FIXED_VOTERS,
            BrokerEpochs: NO_EPOCHS,
        }

    def broker_program(
        self,
        broker_id: int,  # noqa: ARG002 - its configuration says it
        config_file: Path,
        mutant: str | None,
        *,
        python: str = sys.executable,
        disk_commands: Path | None = None,  # noqa: ARG002 - a Kafka broker has a disk of its own
    ) -> BrokerProgram:
        """Return the launcher, which becomes the JVM; it reads the jars and, when there are any, the stored classes."""
        assert mutant is None, "refused before the run"
        jars = self._installation().jars
        module = "nemesis.runtimes.kafka_launcher"
        stored = stored_classes(jars)
        options = ["--jars", str(jars), *(f"--classes={archive}" for archive in stored)]
        return BrokerProgram(
            [python, "-m", module, str(config_file), *options], MEMORY, (jars, *stored)
        )

    def _installation(self) -> Installation:
        return cached(self._version) if self._home is None else installed_in(self._home)


def _chosen_release(options: Mapping[str, str]) -> tuple[str, Path | None]:
    """Return the version, and the directory if one is named; raises ``UsageError``."""
    if HOME not in options:
        return options.get(VERSION, DEFAULT_VERSION), None
    home = Path(options[HOME]).resolve()
    version = installed_in(home).version
    if options.get(VERSION, version) != version:
        raise UsageError(
            f"--{HOME} {home}: expected Kafka {options[VERSION]}, got {version}: leave --{VERSION} out"
        )
    return version, home


def _reads_logs(options: Mapping[str, str]) -> bool:
    """Return whether the logs of brokers are to be read; raises ``UsageError``."""
    value = options.get(BROKER_LOGS, JUDGED)
    if value != JUDGED:
        raise UsageError(f"{BROKER_LOGS} is {value!r}: expected {JUDGED}, or leave it out")
    return BROKER_LOGS in options


def _require_broker_logs(release: Release, version: str, home: Path | None) -> None:
    """Raise ``UsageError`` when it is not known how these brokers log what their replicas do, or they cannot."""
    if not release.logs_replicas:
        known = ", ".join(row.name for row in RELEASES if row.logs_replicas)
        raise UsageError(
            f"--{BROKER_LOGS}: it is not known what brokers of Kafka {version} log of their replicas: choose a release "
            f"out of {known}"
        )
    if home is not None and not has_log4j_2(home / "libs"):
        raise UsageError(
            f"--{BROKER_LOGS} needs log4j 2, which {home / 'libs'} does not have: leave --{HOME} out"
        )


def _refuse_commas(log_dirs: Iterable[Path]) -> None:
    for log_dir in log_dirs:
        if "," in str(log_dir):
            raise UsageError(
                f"the log directory {log_dir} has a comma, at which Kafka splits log.dirs: choose another --store"
            )


def _with_zookeeper(
    endpoint: BrokerEndpoint, properties: Mapping[str, object]
) -> dict[str, object]:
    return {
        **_listeners(endpoint, properties),
        "broker.id": str(endpoint.broker_id),
        "zookeeper.connect": endpoint.zookeeper_connect,
    }


def _with_quorum(endpoint: BrokerEndpoint, properties: Mapping[str, object]) -> dict[str, object]:
    """Return a node that is controller, broker or both: the voters are controllers.

    Nodes find the controller of a broker where a control plane would listen.
    """
    voters = (f"{voter}@{address}" for voter, address in endpoint.voters)
    is_voter = endpoint.broker_id in dict(endpoint.voters)
    is_broker = not is_controller(node_of(endpoint.broker_id))
    roles = [BROKER_ROLE] * is_broker + [CONTROLLER_ROLE] * is_voter
    return {
        **_quorum_listeners(endpoint, properties, roles),
        "process.roles": ",".join(roles),
        "node.id": str(endpoint.broker_id),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": ",".join(voters),
    }


def _quorum_listeners(
    endpoint: BrokerEndpoint, properties: Mapping[str, object], roles: Sequence[str]
) -> dict[str, object]:
    if BROKER_ROLE not in roles:
        own: dict[str, object] = {
            "listeners": f"{CONTROLLER}://{endpoint.bind}",
            "advertised.listeners": f"{CONTROLLER}://{endpoint.advertised}",
        }
    elif CONTROLLER_ROLE in roles:
        own = _listeners(endpoint, {**properties, "control.plane.listener.name": CONTROLLER})
    else:
        own = _listeners(endpoint, properties)
    protocols = f"{PLAINTEXT}:{PLAINTEXT},{CONTROLLER}:{PLAINTEXT}"
    return {**own, "listener.security.protocol.map": protocols}


def _controllers(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_CONTROLLERS:
        raise UsageError(
            f"--{CONTROLLERS} is {text}: expected 0 (each broker is a controller) to {MOST_CONTROLLERS}"
        )
    return int(text)


def _listeners(endpoint: BrokerEndpoint, properties: Mapping[str, object]) -> dict[str, object]:
    """Return the listeners and their protocol: Kafka demands it for a name that is not that of a protocol."""
    listeners = listener_properties(endpoint, properties)
    names = [listener.partition("://")[0] for listener in str(listeners["listeners"]).split(",")]
    protocols = ",".join(f"{name}:{PLAINTEXT}" for name in names)
    return {"listener.security.protocol.map": protocols, **listeners}
