"""Reports of seeds, as workers make them."""

from __future__ import annotations

from typing import Any

from nemesis.checkers.framework.model import Verdict
from nemesis.searching.explore.coverage_counts import Coverage
from nemesis.searching.explore.seed import SeedFinding, SeedReport


def report(seed: int, *, broken: tuple[str, ...] = (), **changes: Any) -> SeedReport:
    """A seed whose run is in order but for the broken properties and the changes."""
    fields: dict[str, Any] = {
        "verdict": Verdict.INVALID if broken else Verdict.VALID,
        "checked": {"hw-bounded": 10, "single-controller": 3},
        "findings": tuple(
            SeedFinding(property=name, key="orders-0", sentence=f"seed {seed} broke it.")
            for name in broken
        ),
        "doubts": (),
        "trace_hash": f"{seed:032x}",
        "events": 100,
        "deviations": 2,
        "virtual_s": 60.0,
        "real_s": 3.0,
        "coverage": Coverage(),
    }
    return SeedReport(seed=seed, **{**fields, **changes})
