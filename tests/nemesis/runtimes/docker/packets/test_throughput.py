"""The packet handler is no bottleneck for what a cluster sends. ``benchmarks/bench_packets.py`` has the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench_packets import DELAY_MS, REQUIRED_MB_S
from benchmarks.namespaces import transfer
from tests.nemesis.runtimes.docker.packets.laboratory import Laboratory, links, play

pytestmark = pytest.mark.e2e

ROUNDS = 3
"""Other work on the machine may slow some down."""
SIZE = 50_000_000


def test_what_is_required_comes_through_with_a_delay_in_both_directions(tmp_path: Path) -> None:
    async def scene(lab: Laboratory) -> None:
        both = links(("broker-1", "broker-2"), ("broker-2", "broker-1"))
        await lab.rules.delay(both, delay_ms=DELAY_MS)
        first, two = lab.machines["broker-1"], lab.machines["broker-2"]
        rates = [await transfer(first, two, size=SIZE) for _ in range(ROUNDS)]
        assert max(rates) >= REQUIRED_MB_S, rates
        counted = (await lab.rules.packet_counters(both)).values()
        assert all(link.delayed for link in counted)

    play(tmp_path, scene)
