"""What the compose file says of a container, in the engine's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from docker import APIClient

from nemesis.interfaces.errors import RuntimeFailure
from nemesis.runtimes.docker.creation import create_container

COMPOSED: dict[str, Any] = {
    "services": {
        "broker-1": {
            "image": "nemesis:tag",
            "container_name": "nemesis-0a1b-broker-1",
            "volumes": [
                "data:/var/lib/nemesis",
                "./clocks/broker-1:/run/nemesis/wall-clock:ro",
                "/opt/jars:/opt/jars:ro",
            ],
            "networks": {"cluster": {"ipv4_address": "198.18.7.21"}},
        }
    },
    "volumes": {"data": {"name": "nemesis-0a1b-data"}},
    "networks": {"cluster": {"name": "nemesis-0a1b-network"}},
}


class Engine:
    """Of a client what makes a container; keeps what it was asked for."""

    def __init__(self) -> None:
        self.api = self.containers = self
        self.asked: dict[str, Any] = {}
        self._words = APIClient(base_url="unix:///nobody.sock", version="1.41")

    def create_host_config(self, **options: Any) -> Any:
        return self._words.create_host_config(**options)

    def create_endpoint_config(self, **options: Any) -> Any:
        return self._words.create_endpoint_config(**options)

    def create_container(self, image: str, **options: Any) -> dict[str, str]:
        self.asked = {"image": image, **options}
        return {"Id": "0"}

    def get(self, container_id: str) -> str:
        return container_id


def created(composed: dict[str, Any], directory: Path) -> dict[str, Any]:
    engine = Engine()
    create_container(cast("Any", engine), composed, "broker-1", {}, directory)
    return engine.asked


def test_a_run_whose_path_has_a_colon_is_mounted_as_any_other() -> None:
    mounts = created(COMPOSED, Path("/store/at 10:30"))["host_config"]["Mounts"]
    positions = [(m["Type"], m["Source"], m["Target"], m["ReadOnly"]) for m in mounts]
    assert positions == [
        ("volume", "nemesis-0a1b-data", "/var/lib/nemesis", False),
        ("bind", "/store/at 10:30/clocks/broker-1", "/run/nemesis/wall-clock", True),
        ("bind", "/opt/jars", "/opt/jars", True),
    ]


def test_what_is_not_understood_of_a_service_is_named() -> None:
    service = COMPOSED["services"]["broker-1"] | {"privileged": True}
    with pytest.raises(RuntimeFailure, match="says 'privileged' of broker-1: not understood"):
        created(COMPOSED | {"services": {"broker-1": service}}, Path("/store"))


def test_a_volume_that_the_file_does_not_have_is_named() -> None:
    with pytest.raises(RuntimeFailure, match="has no volume 'data'"):
        created(COMPOSED | {"volumes": {}}, Path("/store"))
