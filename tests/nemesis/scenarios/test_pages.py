"""``docs/scenarios.md`` and its JSON schema are those of the structs, and a printed scenario is the scenario."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesis.cli.app import call
from nemesis.scenarios import pages, scenario
from nemesis.scenarios.scenario import SAFE_BROKER, Scenario


def test_the_committed_page_and_schema_are_current() -> None:
    """``python -m nemesis.scenarios.pages`` writes them; read the difference before you commit it."""
    assert pages.PAGE.read_text("utf-8") == pages.page()
    assert pages.SCHEMA.read_text("utf-8") == pages.schema_text()


def test_every_key_of_a_scenario_has_a_meaning() -> None:
    for struct in pages._structs(Scenario):
        assert list(pages.meanings(struct)) == list(struct.__struct_fields__)


@pytest.mark.parametrize("name", scenario.names())
def test_a_printed_scenario_is_the_scenario(name: str) -> None:
    loaded = scenario.load(name)
    again = scenario.parse(pages.as_yaml(loaded), where="the text")
    assert json.dumps(pages.full(again)) == json.dumps(pages.full(loaded))


def test_the_command_prints_a_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["scenario", "topics"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert call(["scenario", "topics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == printed
    assert printed["phases"]["quiet_s"] == scenario.load("topics").phases.quiet_s


def test_the_example_is_a_scenario() -> None:
    assert scenario.parse(pages.EXAMPLE, where="the example").objectives.leaderless_s == 6


def test_time_outs_are_safe_unless_a_scenario_sets_them() -> None:
    text = "name: mine\nbroker: {replica.lag.time.max.ms: 9000}"
    parsed = scenario.parse(text, where="the text")
    assert parsed.broker == {**SAFE_BROKER, "replica.lag.time.max.ms": 9000}


@pytest.mark.parametrize("name", scenario.names())
def test_scenarios_that_come_with_nemesis_state_their_time_outs(
    name: str,
) -> None:
    file = Path(scenario.__file__).parent / f"{name}.yaml"
    assert set(SAFE_BROKER) <= set(yaml.safe_load(file.read_text("utf-8"))["broker"])


def _names_in(part: Any) -> set[str]:
    return set(part["enum"])


def test_the_schema_names_what_can_be_chosen() -> None:
    parts = pages.schema()["$defs"]
    properties = parts["Scenario"]["properties"]
    assert "simulation" in _names_in(properties["runtime"])
    assert "kafka" in _names_in(properties["target"])
    assert "pause" in _names_in(parts["FaultSettings"]["properties"]["kinds"]["items"])
    assert parts["Scenario"]["additionalProperties"] is False
