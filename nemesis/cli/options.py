"""Options that several commands have: one spelling and one range everywhere."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from nemesis.cli import completions
from nemesis.history.sources import JUDGED, EventSource
from nemesis.scenarios.broker_properties import OPTION
from nemesis.support.errors import UsageError

MAX_JOBS: Final = 256
MAX_SHOWN: Final = 40
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,40}")
"""Not everything that Python reads: no underscores, and no digits of other scripts."""


def whole_number(text: str) -> int:
    """Return the number; raises ``BadParameter``, to which the option's name is added."""
    text = str(text)  # a default is a number already
    if _INTEGER.fullmatch(text) is None:
        raise typer.BadParameter(f"{_brief(text)} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """Return the number; raises ``BadParameter``, to which the option's name is added."""
    text = str(text)  # a default is a number already
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{_brief(text)} is not a number") from None


def _brief(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")


def require_range(option: str, value: int, low: int, high: int) -> None:
    """Raise ``UsageError`` when the value of an option is out of range."""
    if not low <= value <= high:
        raise UsageError(f"{option} is {value}: allowed are {low} to {high}")


def given_options(context: typer.Context) -> frozenset[str]:
    """Return the options that the command line contains, by their long names."""
    given = set()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            given.add(max(parameter.opts, key=len))
    return frozenset(given)


def target_options(
    kafka_version: str | None,
    kafka_home: Path | None,
    reference: int | None,
    controllers: int | None = None,
    *,
    broker_logs: bool = False,
) -> dict[str, str]:
    """Return the options of the target that are given, by their names."""
    given = {
        "kafka-version": kafka_version,
        "kafka-home": kafka_home,
        "reference": reference,
        "controllers": controllers,
        EventSource.BROKER_LOGS.value: JUDGED if broker_logs else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def broker_count(brokers: int | None, reference: int | None, kafka: int | None) -> int | None:
    """Return the number of brokers that is given, whole or by kind; None if none is. Raises ``UsageError``."""
    if kafka is None:
        return brokers
    if brokers is not None or reference is None:
        raise UsageError("--kafka: expected --reference with it, and --brokers without both")
    return reference + kafka


def workers(jobs: int | None) -> int:
    """Return the number of workers; raises ``UsageError``."""
    if jobs is None:
        return len(os.sched_getaffinity(0))
    require_range("--jobs", jobs, 1, MAX_JOBS)
    return jobs


ScenarioName = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A name from `nemesis list`, or a .yaml file.",
        autocompletion=completions.scenarios,
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")]
RunLocation = Annotated[
    str,
    typer.Argument(
        metavar="RUN|URI|FILE", help="The directory of a run, here or elsewhere, or a history."
    ),
]
Store = Annotated[Path, typer.Option("--store", metavar="DIR", help="Where runs are kept.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON for machines.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="A line for each property instead of each family."),
]
Checkers = Annotated[
    str | None,
    typer.Option(
        "--checkers",
        metavar="A,B",
        help="Judge only these properties.",
        autocompletion=completions.checkers,
    ),
]
Known = Annotated[
    str,
    typer.Option(
        "--known",
        metavar="documented|suspected|none",
        help="Known behaviour of Kafka that does not count: what Kafka documents, bugs that are suspected too, none.",
    ),
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
    str | None,
    typer.Option(
        "--faults",
        metavar="A,B",
        help="Only these kinds, or all that the runtime can do: all.",
        autocompletion=completions.faults,
    ),
]
BrokerPropertyList = Annotated[
    list[str] | None,
    typer.Option(
        OPTION, metavar="NAME=VALUE", help="A property of every broker; may be given again."
    ),
]
MutantName = Annotated[
    str | None,
    typer.Option(
        "--mutant",
        metavar="NAME|FILE.py",
        help="Plant this bug, or the one that a file holds.",
        autocompletion=completions.mutants,
    ),
]
Seeds = Annotated[
    int, typer.Option("--seeds", metavar="N", parser=whole_number, help="How many, one run each.")
]
FirstSeed = Annotated[
    int, typer.Option("--first-seed", metavar="K", parser=whole_number, help="Where to begin.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="J", parser=whole_number, help="Workers. Default: one per core."
    ),
]
