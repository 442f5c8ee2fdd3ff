"""The reference's network code, unmodified, on the simulated loop and network."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.nemesis.simulation import reference_pair


def whats(events: list[tuple[int, str]]) -> list[str]:
    return [label for _, label in events]


def between(events: list[tuple[int, str]], start: str, end: str) -> list[str]:
    reported = whats(events)
    first = reported.index(f"nemesis: {start}")
    return reported[first : reported.index(f"nemesis: {end}", first)]


def test_the_pair_meets_what_it_would_meet_on_real_sockets() -> None:
    events = reference_pair.run(1)
    assert any("hears of" in label for label in whats(events)[:10])
    held = between(events, "hold requests", "release")
    assert any("no answer" in label and "definite=False" in label for label in held)
    assert not any("handles" in label or "hears" in label for label in held[2:])
    late = between(events, "release", "hold replies")
    assert any("hears" in label for label in late)
    paused = between(events, "pause", "resume")
    assert any("no answer" in label and "definite=False" in label for label in paused)
    assert any("reset" in label.lower() for label in between(events, "reset", "kill")[1:])
    dead = between(events, "kill", "start")
    assert any("Connect call failed" in label and "definite=True" in label for label in dead)
    assert any("hears" in label for label in whats(events)[-10:])


def test_a_seed_repeats_in_fresh_interpreters_with_other_hash_seeds() -> None:
    local = [f"{instant} {label}" for instant, label in reference_pair.run(5)]
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-m", "tests.nemesis.simulation.reference_pair", "5"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.splitlines() == local


def test_other_seeds_give_other_runs() -> None:
    assert len({tuple(reference_pair.run(seed)) for seed in range(3)}) == 3
