"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.cli.options import broker_count, target_options
from nemesis.support.errors import UsageError


def test_only_what_is_given_is_an_option_of_the_target() -> None:
    assert target_options(None, None, None, broker_logs=False) == {}
    given = {"kafka-version": "3.9.1", "kafka-home": "/opt/kafka", "reference": "2"}
    assert target_options("3.9.1", Path("/opt/kafka"), 2) == given
    assert target_options("4.1.1", None, None, 3) == {"kafka-version": "4.1.1", "controllers": "3"}
    assert target_options(None, None, None, broker_logs=True) == {"broker-logs": "judged"}


def test_brokers_are_counted_as_a_whole_or_by_kind() -> None:
    assert broker_count(None, None, None) is None
    assert broker_count(5, None, None) == 5
    assert broker_count(5, 2, None) == 5
    assert broker_count(None, 1, 2) == 3


@pytest.mark.parametrize(("brokers", "reference"), [(3, 1), (None, None)])
def test_the_number_of_kafka_brokers_needs_that_of_the_others(
    brokers: int | None, reference: int | None
) -> None:
    with pytest.raises(UsageError, match="expected --reference with it"):
        broker_count(brokers, reference, 2)
