"""The smaller run in the store, and what it says of itself: from which run it came, and by how much it is smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from nemesis import reports
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.planted import planted_story
from nemesis.searching.shrink.shrinker import Shrunk
from nemesis.searching.shrink.trials import Size
from nemesis.searching.simulate import store_result
from nemesis.support.paths import short


def store_shrunk(
    shrunk: Shrunk, origin: RunDirectory, directory: Path, command_line: Sequence[str]
) -> RunDirectory:
    """Make the run directory of the result below ``directory``, with plan, history and report; raises OSError."""
    run = store_result(shrunk.simulated, shrunk.spec, directory, command_line)
    about = {
        "run": short(origin.path),
        "property": shrunk.evidence.finding.property,
        "key": shrunk.evidence.finding.key,
        "before": asdict(shrunk.before),
        "after": asdict(shrunk.after),
        "runs": shrunk.runs,
        "failures": len(shrunk.failures),
        "seconds": round(shrunk.seconds, 1),
        "stopped_by": shrunk.stopped_by,
        "sentence": compared(shrunk.before, shrunk.after),
    }
    run.write_info(msgspec.structs.replace(run.read_info(), shrunk=about))
    reports.write(run, shrunk.simulated.outcome, story=planted_story(run.read_info()))
    return run


def compared(before: Size, after: Size) -> str:
    """Return how much smaller it is: ``faults 7 to 2, operations 2,931 to 4, ...``, and why anything is larger."""
    names = ("faults", "operations", "seconds", "deviations")
    parts, fewer = [], ""
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        part = f"{name} {old:,g} to {new:,g}"
        if new > old:
            # Only what counts more can have paid for it; plainer faults are not in the numbers.
            part += f" (more, because {fewer or 'plainer faults'} weigh more)"
        elif new < old and not fewer:
            fewer = f"fewer {name}"
        parts.append(part)
    return ", ".join(parts)
