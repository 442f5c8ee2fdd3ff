"""The table of releases: each of 1.0 to 4.1 has one row, 3.3 to 4.1 run, and all others are refused in one sentence."""

from __future__ import annotations

import pytest

from nemesis.support.errors import UsageError
from nemesis.targets.kafka.releases import DEFAULT_VERSION, RELEASES, find_release, row_of


def test_the_default_is_a_version_that_was_started_and_has_a_checksum() -> None:
    release = find_release(DEFAULT_VERSION)
    assert release.started == DEFAULT_VERSION
    assert release.main_checksum(DEFAULT_VERSION) is not None
    assert release.main_jar(DEFAULT_VERSION) == "kafka_2.13-3.9.1.jar"


def test_the_rows_are_in_order_and_belong_to_their_releases() -> None:
    lines = [release.line for release in RELEASES]
    assert lines == sorted(set(lines))
    for release in RELEASES:
        assert release.started is None or row_of(release.started) is release


def test_releases_from_4_on_run_with_kraft() -> None:
    assert {r.name for r in RELEASES if not r.uses_zookeeper} == {"4.0", "4.1"}
    assert find_release("4.1.1").main_checksum("4.1.1") is not None


def test_another_patch_release_has_the_row_but_not_the_checksum() -> None:
    assert find_release("3.9.0") is find_release("3.9.1")
    assert find_release("3.9.0").main_checksum("3.9.0") is None


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("4.2.0", "choose a release from 3.3 to 4.1"),
        ("0.11.0", "choose a release from 3.3 to 4.1"),
        ("3.10.0", "choose a release from 3.3 to 4.1"),
        ("2.8.0", "does not know Metadata in version 12, which the clients of the harness send"),
        (
            "3.2.3",
            "does not know DescribeLogDirs in version 4, .*: choose a release from 3.3 to 4.1",
        ),
        ("3.9", "expected three numbers, such as 3.9.1"),
        ("../3.9.1", "expected three numbers"),
    ],
)
def test_a_version_that_cannot_be_run_is_refused(version: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        find_release(version)
