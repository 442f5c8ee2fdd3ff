"""The containers of a run, from the compose file in its directory: which node is which, and where.

Only runs in containers have such a file. One that a person has changed beyond reading names no containers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

COMPOSE_FILE: Final = "compose.yaml"


@dataclass(frozen=True, slots=True)
class NamedContainer:
    """A node of the run, as the engine knew it."""

    node: str
    name: str
    address: str


def containers(run: Path) -> list[NamedContainer]:
    """Return the containers of the run in this directory, in the file's order; none where it had none."""
    if not (run / COMPOSE_FILE).exists():
        return []
    import yaml  # only containers have any

    try:
        services = yaml.safe_load((run / COMPOSE_FILE).read_bytes())["services"]
        return [
            NamedContainer(node, service["container_name"], _address(service["networks"]))
            for node, service in services.items()
        ]
    except (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return []


def _address(networks: dict[str, dict[str, str]]) -> str:
    return next(iter(networks.values()))["ipv4_address"]
