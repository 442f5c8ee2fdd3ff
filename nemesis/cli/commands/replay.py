"""``nemesis replay``: repeat a stored run, and say whether it came out the same.

Exit codes: 0 identical; 1 a simulated run came out differently; 254 and 255 as everywhere. A real run cannot be
repeated exactly: its plan is run again, with the exit codes of ``nemesis run``.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from nemesis.cli.app import command_line
from nemesis.cli.console import note, out, say_json
from nemesis.cli.options import Json, RunPath, Store
from nemesis.history.run_directory import RunDirectory
from nemesis.searching.replay import EVENTS_GONE, Replayed, rerun_arguments
from nemesis.searching.replay import replay as repeat
from nemesis.support.interrupts import terminable
from nemesis.support.runtime_names import SIMULATION

EXIT_DIFFERENT = 1


def replay(
    path: RunPath,
    store: Store = Path("store"),
    as_json: Json = False,
) -> None:
    """Repeat a run: a simulated one exactly, a real one with the same plan."""
    directory = RunDirectory.open(path)
    if directory.read_info().runtime != SIMULATION:
        arguments = [*rerun_arguments(directory), "--store", str(store)]
        arguments += ["--json"] if as_json else []
        note("a real run cannot be repeated exactly: the same plan is run again")
        again = typer.main.get_command(command_line(arguments))
        code = again.main(args=arguments, prog_name="nemesis", standalone_mode=False)
        raise typer.Exit(code if isinstance(code, int) else 0)
    with terminable():
        replayed = repeat(directory)
    if as_json:
        say_json({**asdict(replayed), "verdict": replayed.verdict.value})
    else:
        out.print(_sentence(replayed))
    raise typer.Exit(0 if replayed.is_identical else EXIT_DIFFERENT)


def _sentence(replayed: Replayed) -> str:
    if replayed.is_identical and replayed.stored_hash is not None:
        return f"identical: {replayed.events} events, hash {replayed.trace_hash}, {replayed.verdict.value}"
    if replayed.is_identical:
        return (
            f"identical as far as it went: {replayed.compared} events of an interrupted run; "
            f"to its end it has {replayed.events}, hash {replayed.trace_hash}, {replayed.verdict.value}"
        )
    changed = replayed.changed_versions
    why = f"\nchanged since: {', '.join(changed)}" if changed else ""
    same = f"after {replayed.compared} events" if replayed.compared else "from the first event on"
    if replayed.difference == EVENTS_GONE:
        return f"different: {EVENTS_GONE}{why}"
    return f"different {same}: {replayed.difference}{why}"
