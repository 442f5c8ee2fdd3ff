"""What a kernel lacks, in words."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from nemesis.interfaces.network import BandwidthLimits, Connections, Delays, RequestLinks
from nemesis.interfaces.packets import Packets
from nemesis.runtimes.docker.packets import kernel
from nemesis.runtimes.docker.packets.handler import Station
from nemesis.runtimes.docker.packets.kernel import Feature
from nemesis.runtimes.docker.packets.shaping import Lane
from tests.nemesis.runtimes.docker.packets.laboratory import features

ALL = frozenset(Feature)
MANY_FILES = 1_024
"""``select`` takes descriptors below this only."""


def test_a_kernel_with_everything_lacks_nothing() -> None:
    assert kernel.missing(ALL) == {}


@pytest.mark.parametrize(
    ("missing", "lost"),
    [
        ({Feature.QUEUE}, {Delays, Packets}),
        ({Feature.U32}, set()),
        (
            {Feature.U32, Feature.QUEUE},
            {
                RequestLinks,
                Delays,
                Packets,
            },
        ),
        ({Feature.LOSS}, {Packets}),
        ({Feature.RESET}, {Connections}),
        ({Feature.BANDWIDTH}, {BandwidthLimits}),
    ],
)
def test_what_needs_a_missing_feature_is_lacking(missing: set[Feature], lost: set[type]) -> None:
    assert set(kernel.missing(ALL - missing)) == lost


def test_the_reason_names_what_is_missing() -> None:
    missing = kernel.missing(ALL - {Feature.U32, Feature.QUEUE, Feature.LOSS})
    assert missing[RequestLinks].reason == "this kernel lacks the match u32 or the target NFQUEUE"
    assert missing[Packets].reason == "this kernel lacks the target NFQUEUE and the match statistic"


def test_a_kernel_that_takes_the_rule_and_hands_no_packets_over_has_no_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Feature.QUEUE in features()

    def refuse(station: Station, queue: int, lane: Lane) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(Station, "open_lane", refuse)
    assert asyncio.run(kernel.features()) == features() - {Feature.QUEUE}


def test_queues_are_found_by_a_process_that_has_many_files_open() -> None:
    assert Feature.QUEUE in features()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY_FILES), hard))
    with ExitStack() as files:
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while files.enter_context(Path(os.devnull).open("rb")).fileno() < MANY_FILES:
            pass
        assert asyncio.run(kernel.features()) == features()
