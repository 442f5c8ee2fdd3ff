"""``nemesis export``: what the clients of a run did, as a history that Jepsen's checkers read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nemesis.cli.console import note, out, say_json
from nemesis.cli.options import Json, RunPath
from nemesis.history.foreign.exporting import operations_of, write
from nemesis.history.run_directory import RunDirectory
from nemesis.judging.foreign import workload_of
from nemesis.support.errors import UsageError


def export(
    path: RunPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The EDN file to be written.")],
    as_json: Json = False,
) -> None:
    """Write the clients' operations of a run as EDN, so that Jepsen, Elle and Knossos can judge them."""
    workload = workload_of(path, None) or "kafka"
    run = RunDirectory.open(path)
    if file.exists():
        raise UsageError(f"{file} exists already: choose another name")
    if not file.parent.is_dir():
        raise UsageError(f"{file} cannot be written: there is no directory {file.parent}")
    operations = operations_of(run)
    try:
        count = write(operations, file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
    may_lack = bool(run.read_info().foreign.get("may_lack_operations"))
    if as_json:
        said = {"file": str(file), "workload": workload, "operations": count}
        say_json({**said, "may_lack_operations": may_lack})
        return
    if may_lack:
        note(
            f"operations may be missing from this history, and nothing in {file} tells a checker so"
        )
    out.print(f"{count} lines of workload {workload}: {file}")
