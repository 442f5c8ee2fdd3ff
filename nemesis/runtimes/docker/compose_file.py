"""The compose file of a run: written from ``compose/compose.yaml``, read by the runtime, usable by a person.

The template is a compose file itself: its variables (``${NETWORK:-10.199.0}``) have defaults, and this module fills
them in as compose would, and makes one service and two volumes for each broker from those of the one in the template.
The written file is the single source of what the run's cluster is; ``docker compose up`` in the run's directory brings
the same cluster up by hand.

Source: the Compose Specification (interpolation; ``$$`` is a plain dollar sign). Of variables only ``${NAME}`` and
``${NAME:-default}`` are known here.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Mapping
from ipaddress import IPv4Network
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from nemesis.runtimes.clock_control import control_page
from nemesis.runtimes.docker import labels
from nemesis.support.errors import UsageError
from nemesis.support.node_names import BROKER, CONTROLLER, is_controller
from nemesis.targets.base import BrokerProgram

TEMPLATE: Final = Path(__file__).parents[3] / "compose" / "compose.yaml"
FILE_NAME: Final = "compose.yaml"

NODE_DIRECTORY: Final = PurePosixPath("/var/lib/nemesis")
"""Where a node keeps what must outlive its container: a volume."""

DATA_DIRECTORY: Final = NODE_DIRECTORY / "data"
"""A broker's logs; a ZooKeeper member's transaction logs are in ``version-2`` of it."""

TRACE_FILE: Final = NODE_DIRECTORY / "trace.jsonl"
CONFIGURATION_FILE: Final = PurePosixPath("/run/nemesis/configuration")
WALL_CLOCK: Final = PurePosixPath("/run/nemesis/wall-clock")
"""The control page of a node's wall clock: a file of the run's directory, mounted."""

PYTHON: Final = "python3"

ZOOKEEPERS: Final = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
"""The ensemble, as the template has it."""

Compose = dict[str, Any]
"""A compose file as data: ``services``, ``volumes`` and ``networks``."""

_VARIABLE: Final = re.compile(r"\$(?:\$|\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*))?\})")


def read_template(path: Path = TEMPLATE) -> Compose:
    """Return it as data; raises ``UsageError`` when it is missing or no YAML."""
    return _parse(path)


def effective(
    template: Compose,
    *,
    run_id: str,
    subnet: IPv4Network,
    image: str,
    hosts: Mapping[str, str],
    brokers: Mapping[str, Mapping[str, object]],
    programs: Mapping[str, BrokerProgram] | None = None,
    tick_time_ms: int = 500,
    has_zookeeper: bool = True,
) -> Compose:
    """Return the whole cluster of a run, nothing left open.

    ``subnet`` is a /24. ``hosts`` has the addresses of brokers and KRaft controllers, ``brokers`` their whole
    properties, both by node.
    ``programs`` has what starts a broker, by node, when it is not what the template says. Without ``has_zookeeper`` the
    ensemble is left out: brokers are the controllers of a KRaft quorum then.
    """
    variables = {
        "RUN": run_id,
        "IMAGE": image,
        "NETWORK": str(subnet[0]).rpartition(".")[0],
        "TICK_TIME_MS": str(tick_time_ms),
    }
    services, volumes = dict(template["services"]), dict(template["volumes"])
    broker_service, broker_volume = services.pop("broker"), volumes.pop("broker-1")
    broker_disk = volumes.pop(disk_volume("broker-1"))
    if not has_zookeeper:
        broker_service = {k: v for k, v in broker_service.items() if k != "depends_on"}
        services, volumes = (
            {k: v for k, v in part.items() if k not in ZOOKEEPERS} for part in (services, volumes)
        )
    services, volumes = fill_in(services, variables), fill_in(volumes, variables)
    for node, properties in brokers.items():
        own = {"BROKER": node.rpartition("-")[2], "BROKER_HOST": hosts[node], **variables}
        program = None if programs is None else programs[node]
        if program is not None:
            own["BROKER_MEMORY"] = program.memory
        like_broker = _as_controller if is_controller(node) else copy.deepcopy
        service = like_broker(fill_in(broker_service, own))
        service["environment"]["NODE_CONFIGURATION"] = json.dumps(properties, indent=2) + "\n"
        if (trace := properties.get("trace.file")) is not None:
            service["labels"][labels.TRACE] = str(trace)
        if program is not None:
            service["command"] = program.command
            service["volumes"] += [f"{path}:{path}:ro" for path in program.paths]
        services[node], volumes[node] = service, like_broker(fill_in(broker_volume, own))
        volumes[disk_volume(node)] = like_broker(fill_in(broker_disk, own))
    for node, service in services.items():
        page = f"./{control_page.DIRECTORY}/{node}:{WALL_CLOCK}:ro"
        service["volumes"] = [*service["volumes"], page]
    networks = fill_in(template["networks"], variables)
    return {"services": services, "volumes": volumes, "networks": networks}


def _as_controller(described: Any) -> Any:
    """Return a broker's part of the file for the controller with the same number: a controller has another port."""
    return _mapped(
        described, lambda text: text.replace(BROKER, CONTROLLER).replace("/9092", "/9093")
    )


def volumes_of(compose: Compose, nodes: Collection[str]) -> dict[str, Any]:
    """Return the volumes of these nodes, by key."""
    keys = {*nodes, *map(disk_volume, nodes)}
    return {key: volume for key, volume in compose["volumes"].items() if key in keys}


def disk_volume(broker: str) -> str:
    """Return the key of the volume that has the broker's logs, and nothing else."""
    return f"{broker}-disk"


def fill_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Return a deep copy in which the variables of every string have their values, or their defaults."""

    def value_of(result: re.Match[str]) -> str:
        name, default = result["name"], result["default"]
        if name is None:
            return "$"
        if name not in variables and default is None:
            raise UsageError(f"the compose file's variable {name} has no value and no default")
        return variables.get(name, default or "")

    return _mapped(value, lambda text: _VARIABLE.sub(value_of, text))


def write(compose: Compose, path: Path) -> None:
    """Write it for compose, which takes a plain dollar sign doubled; raises OSError."""
    escaped = _mapped(compose, lambda text: text.replace("$", "$$"))
    text = yaml.dump(escaped, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> Compose:
    """Return what ``write`` wrote, dollar signs and all; raises ``UsageError``."""
    return _mapped(_parse(path), lambda text: text.replace("$$", "$"))  # type: ignore[no-any-return]


def _parse(path: Path) -> Compose:
    try:
        parsed = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the compose file {path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"the compose file {path} is not YAML: {error}") from None
    if not isinstance(parsed, dict) or not {"services", "volumes", "networks"} <= parsed.keys():
        raise UsageError(f"the compose file {path} lacks services, volumes or networks")
    return parsed


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a deep copy with every string value changed; keys stay."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {key: _mapped(item, change) for key, item in value.items()}
        case list():
            return [_mapped(item, change) for item in value]
        case _:
            return copy.copy(value)


class _Dumper(yaml.SafeDumper):
    """Several lines as a block, no anchors: for a reader."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
