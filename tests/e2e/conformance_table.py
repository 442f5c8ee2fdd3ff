"""The table fault × runtime of ``docs/faults.md``, from the parts that the runtimes lack, and why.

The test of this module writes it anew, and fails, when the one in the docs is not current; the conformance suite says
whether it is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nemesis.faults import FAULTS
from nemesis.interfaces.runtime import Missing, first_missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.docker.runtime import UNSUPPORTED as DOCKER
from nemesis.runtimes.local.runtime import UNSUPPORTED as LOCAL
from nemesis.runtimes.simulation.runtime import UNSUPPORTED as SIMULATION

DOCS = Path(__file__).parents[2] / "docs" / "faults.md"
BEGIN = "<!-- conformance: written by tests/nemesis/faults/test_conformance_table.py -->\n"
END = "<!-- end of conformance -->\n"


def runtimes() -> Mapping[str, Missing]:
    """Return what each runtime lacks on a machine that has everything."""
    return {
        "simulation": SIMULATION,
        "local": LOCAL,
        "docker": DOCKER,
    }


def kinds(runtime: str) -> list[str]:
    """Return the faults that a runtime can do."""
    missing = runtimes()[runtime]
    return [name for name, kind in FAULTS.items() if first_missing(kind.needs, missing) is None]


def render() -> str:
    """Return the table as Markdown."""
    rows = [["fault", *(f"`{runtime}`" for runtime in runtimes())]]
    rows += [["---"] * len(rows[0])]
    rows += [
        [
            f"`{name}`",
            *(_cell(first_missing(kind.needs, missing)) for missing in runtimes().values()),
        ]
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


def _cell(missing: Unsupported | None) -> str:
    return "yes" if missing is None else f"no: {missing.reason}"
