"""The reference's network code, unmodified, on the simulated loop and network."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.nemesis.simulation import reference_pair


def whats(events: list[tuple[int, str]]) -> list[str]:
    return [what for _, what in events]


def between(events: list[tuple[int, str]], start: str, end: str) -> list[str]:
    told = whats(events)
    first = told.index(f"nemesis: {start}")
    return told[first : told.index(f"nemesis: {end}", first)]


def test_the_pair_meets_what_it_would_meet_on_real_sockets() -> None:
    events = reference_pair.run(1)
    assert any("hears of" in what for what in whats(events)[:10])
    held = between(events, "hold requests", "release")
    assert any("no answer" in what and "definite=False" in what for what in held)
    assert not any("handles" in what or "hears" in what for what in held[2:])
    late = between(events, "release", "hold replies")
    assert any("hears" in what for what in late)
    paused = between(events, "pause", "resume")
    assert any("no answer" in what and "definite=False" in what for what in paused)
    assert any("reset" in what.lower() for what in between(events, "reset", "kill")[1:])
    dead = between(events, "kill", "start")
    assert any("Connect call failed" in what and "definite=True" in what for what in dead)
    assert any("hears" in what for what in whats(events)[-10:])


def test_a_seed_repeats_in_fresh_interpreters_with_other_hash_seeds() -> None:
    here = [f"{moment} {what}" for moment, what in reference_pair.run(5)]
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-m", "tests.nemesis.simulation.reference_pair", "5"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.splitlines() == here


def test_other_seeds_give_other_runs() -> None:
    assert len({tuple(reference_pair.run(seed)) for seed in range(3)}) == 3
