"""Kafka's jars, for tests that need them."""

from __future__ import annotations

import pytest

from nemesis.support.errors import MissingRequirement
from nemesis.targets.kafka.installation import fetch
from nemesis.targets.kafka.releases import DEFAULT_VERSION


def require_jars(version: str = DEFAULT_VERSION) -> None:
    """Fetch the jars of a release into the cache; skip the test, with the reason, where they cannot be had."""
    try:
        fetch(version, print)
    except MissingRequirement as error:
        pytest.skip(str(error))
