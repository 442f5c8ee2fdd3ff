"""A broker reads the settings of a topic when it opens a log of it, and ignores that they have changed.

An administrator is answered that the setting is changed, DescribeConfigs shows the new value, and the leader goes on
with the old one until it starts again.

Must be caught by: settings-take-effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _ignored(_correct: Callable[..., Any]) -> Callable[..., Any]:
    async def process_config_changes(_handler: Any, _name: str) -> None:
        return

    return process_config_changes


MUTANT = Mutant(
    name="settings-read-once",
    property="settings-take-effect",
    summary="a broker reads the settings of a topic when it opens a log of it, and ignores later changes",
    replacements=(
        Replacement(
            "nemesis.reference.server.config_handlers",
            "TopicConfigHandler.process_config_changes",
            _ignored,
        ),
    ),
    scenario="rich-clients",
)
