"""The settings of topics: what can be set, to which values, and what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.log import log_config
from nemesis.reference.log.errors import RecordTooLargeError
from nemesis.reference.log.log_config import ConfigValueError, LogConfig, UnknownConfigError
from tests.reference.log.batches import batch
from tests.reference.log.log_managers import A0, A1, B0, ID, manager


def test_a_topics_own_setting_comes_before_the_default() -> None:
    values, problems = log_config.overrides(
        {"min.insync.replicas": " 2 ", "unclean.leader.election.enable": "TRUE"}
    )
    counts = LogConfig(segment_bytes=100).with_overrides(values)
    assert counts == LogConfig(
        segment_bytes=100, min_insync_replicas=2, unclean_leader_election_enable=True
    )
    assert problems == []


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("min.insync.replicas", "0", "Invalid value 0 .*: Value must be between 1 and 2147483647"),
        ("min.insync.replicas", "two", "Invalid value two .*: Not a number of type INT"),
        ("min.insync.replicas", "1_0", "Not a number"),
        ("segment.bytes", "2147483648", "between 14 and 2147483647"),
        ("segment.bytes", "", "Not a number of type INT"),
        ("flush.messages", "9223372036854775808", "between 1 and"),
        ("unclean.leader.election.enable", "yes", "Expected value to be either true or false"),
    ],
)
def test_a_value_that_cannot_be_is_named(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigValueError, match=sentence):
        log_config.validate({name: text})


def test_an_unknown_name_is_told_before_any_value() -> None:
    with pytest.raises(UnknownConfigError, match=r"name: preallocate"):
        log_config.validate({"segment.bytes": "no", "preallocate": "1"})


def test_what_somebody_else_has_set_has_no_effect() -> None:
    values, problems = log_config.overrides({"preallocate": "1", "segment.bytes": "9"})
    assert values == {}
    assert [problem.split(":")[0] for problem in problems] == [
        "Unknown topic config name",
        "Invalid value 9 for configuration segment.bytes",
    ]


@given(st.dictionaries(st.sampled_from([*log_config.TOPIC_CONFIGS, "other"]), st.text()))
def test_what_can_be_set_is_what_has_an_effect(properties: dict[str, str]) -> None:
    _, problems = log_config.overrides(properties)
    try:
        log_config.validate(properties)
    except ValueError:
        assert problems
    else:
        assert not problems


def test_logs_follow_the_settings_of_their_topic(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    there = logs.get_or_create_log(A0, ID, is_new=True)
    logs.update_topic_config(A0.topic, {"max.message.bytes": 60})
    later = logs.get_or_create_log(A1, ID, is_new=True)
    other = logs.get_or_create_log(B0, ID, is_new=True)
    for log in (there, later):
        with pytest.raises(RecordTooLargeError):
            log.append_as_leader(batch(3), 0)
    other.append_as_leader(batch(3), 0)
    logs.update_topic_config(A0.topic, {})
    there.append_as_leader(batch(3), 0)


def test_a_new_default_leaves_what_a_topic_has_of_its_own(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.update_topic_config(A0.topic, {"min.insync.replicas": 3})
    own = logs.get_or_create_log(A0, ID, is_new=True)
    none = logs.get_or_create_log(B0, ID, is_new=True)
    logs.reconfigure_default_log_config(LogConfig(min_insync_replicas=2, segment_bytes=50))
    assert (own.config.min_insync_replicas, own.config.segment_bytes) == (3, 50)
    assert (none.config.min_insync_replicas, none.config.segment_bytes) == (2, 50)
