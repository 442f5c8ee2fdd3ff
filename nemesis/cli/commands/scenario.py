"""``nemesis scenario``: a scenario with all its defaults, as the file of a scenario of your own may begin."""

from __future__ import annotations

from nemesis.cli.console import out, say_json
from nemesis.cli.options import Json, ScenarioName
from nemesis.scenarios import scenario as scenarios
from nemesis.scenarios.pages import as_yaml, full


def scenario(scenario_name: ScenarioName, as_json: Json = False) -> None:
    """Print a scenario with all its defaults. docs/scenarios.md explains the keys."""
    loaded = scenarios.load(scenario_name)
    if as_json:
        say_json(full(loaded))
    else:
        out.print(as_yaml(loaded), end="")
