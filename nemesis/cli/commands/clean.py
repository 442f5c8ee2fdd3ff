"""``nemesis clean``: what dead runs have left is removed."""

from __future__ import annotations

import typer

from nemesis.cli.console import out, say_json
from nemesis.cli.options import Json
from nemesis.running.clean import clean
from nemesis.support.errors import EXIT_CRASH


def clean_up(as_json: Json = False) -> None:
    """End the processes and containers, and return the addresses, of runs whose harness is dead."""
    done = clean()
    if as_json:
        say_json(
            {
                "runs": done.runs,
                "processes": done.processes,
                "leases": done.leases,
                "engine": done.engine,
                "lost": done.lost,
                "survivors": done.survivors,
                "live_runs": done.live_runs,
            }
        )
    else:
        for ended in done.processes:
            out.print(f"ended {ended}")
        for name in done.engine:
            out.print(f"removed {name}")
        for problem in done.lost:
            out.print(f"lost: {problem}")
        for survivor in done.survivors:
            out.print(f"could not end {survivor}")
        out.print(
            f"{len(done.runs)} dead runs undone: {len(done.processes)} processes ended, "
            f"{len(done.leases)} leases returned, {len(done.engine)} things at the Docker engine removed; "
            f"{done.live_runs} live runs left alone"
        )
    if not done.is_clean:
        raise typer.Exit(EXIT_CRASH)
