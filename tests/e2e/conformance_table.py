"""The table fault × runtime of ``docs/faults.md``, from what the runtimes say that they lack, and why.

The test of this module writes it anew, and fails, when the one in the docs is not current; the conformance suite says
whether it is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nemesis.faults import FAULTS
from nemesis.interfaces.runtime import Lacks
from nemesis.runtimes.docker.disk_faults import ONE_DISK
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.simulation import SimulationRuntime

DOCS = Path(__file__).parents[2] / "docs" / "faults.md"
BEGIN = "<!-- conformance: written by tests/nemesis/faults/test_conformance_table.py -->\n"
END = "<!-- end of conformance -->\n"


def runtimes() -> Mapping[str, Lacks]:
    """Return what each runtime lacks on a machine that has everything."""
    return {
        "simulation": SimulationRuntime.lacks,
        "local": LocalRuntime.lacks,
        "docker": ONE_DISK,
    }


def kinds(runtime: str) -> list[str]:
    """Return the faults that a runtime can do."""
    unsupported = runtimes()[runtime]
    return [name for name, kind in FAULTS.items() if kind.capability not in unsupported]


def render() -> str:
    """Return the table as Markdown."""
    rows = [["fault", *(f"`{runtime}`" for runtime in runtimes())]]
    rows += [["---"] * len(rows[0])]
    rows += [
        [f"`{name}`", *(_cell(runtime.get(kind.capability)) for runtime in runtimes().values())]
        for name, kind in FAULTS.items()
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def committed() -> str:
    """Return the table that is in the docs."""
    return DOCS.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def write() -> None:
    """Put the table into the docs; raises ValueError when they have no place for it."""
    before, begin, rest = DOCS.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCS} lacks the line {(END if begin else BEGIN).strip()}")
    DOCS.write_text(before + begin + render() + end + after, "utf-8")


def _cell(why_not: str | None) -> str:
    return "yes" if why_not is None else f"no: {why_not}"
