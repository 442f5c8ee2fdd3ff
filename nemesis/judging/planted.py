"""The story of a run's planted bug, for its report."""

from __future__ import annotations

import inspect
from importlib import import_module

from nemesis.history.run_directory import RunInfo
from nemesis.registry import UnknownNameError


def planted_story(info: RunInfo) -> str:
    """Return what is wrong in the run's target on purpose; empty without a planted bug, or for one from a file."""
    if info.mutant is None or info.mutant_file:
        return ""
    from nemesis.mutants import (
        MUTANTS,
    )  # with it comes the reference, which most judgements do not need

    try:
        mutant = MUTANTS.find(info.mutant)
    except UnknownNameError:  # of another version of nemesis
        return ""
    try:
        module = import_module(f"nemesis.mutants.{mutant.name.replace('-', '_')}")
    except ImportError:
        return f"{mutant.summary}."
    story = (inspect.getdoc(module) or mutant.summary).partition("Must be caught by")[0]
    return " ".join(story.split())
