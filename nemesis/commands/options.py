"""Options that several commands have: one spelling everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def whole(text: str) -> int:
    """Return the number; raises ``BadParameter``, to which the option's name is added."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number") from None


def number(text: str) -> float:
    """Return the number; raises ``BadParameter``, to which the option's name is added."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None


ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A name from `nemesis list`, or a .yaml file.")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]
Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="Where runs are kept.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for machines.")]
Checkers = Annotated[
    str | None, typer.Option("--checkers", metavar="A,B", help="Judge only these properties.")
]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="spark|inline", help="Where the checkers run.")
]
Master = Annotated[
    str | None, typer.Option("--spark-master", metavar="URL", help="A Spark cluster to use.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit", metavar="SECONDS", parser=number, help="Warm-up, faults and heal."
    ),
]
FaultNames = Annotated[
    str | None, typer.Option("--faults", metavar="A,B", help="Only these kinds.")
]
MutantName = Annotated[str | None, typer.Option("--mutant", metavar="NAME", help="Plant this bug.")]
