"""``nemesis check``: judge what was recorded, here or elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nemesis.checkers.cycles.key_options import LINEARIZABLE, SEQUENTIAL, WFR
from nemesis.cli.options import Checkers, Json, Known, Master, RunLocation, Store, Verbose
from nemesis.cli.outcome import note_kept_results, say_outcome
from nemesis.history.errors import HistoryError
from nemesis.history.remote import RemotePath, parse_location
from nemesis.history.run_directory import RunDirectory
from nemesis.judging import foreign, judge
from nemesis.judging.fetch import fetch
from nemesis.judging.known.marking import Allowed, allowed_of
from nemesis.running.checking_options import (
    anomaly_names,
    checker_names,
    default_engine,
    engine_of,
    model_name,
    require_initial,
    require_keyed,
    spark_master_of,
)


def check(
    run_location: RunLocation,
    workload: Annotated[
        str | None,
        typer.Option("--workload", metavar="NAME", help="What a history from elsewhere is of."),
    ] = None,
    checkers: Checkers = None,
    consistency_model: Annotated[
        str | None,
        typer.Option(
            "--consistency-model",
            metavar="NAME",
            help="What transactions have to keep (strict-serializable).",
        ),
    ] = None,
    anomalies: Annotated[
        str | None,
        typer.Option(
            "--anomalies",
            metavar="A,B",
            help="Anomalies of transactions that count, by Elle's names (those of the model).",
        ),
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(
            "--initial", metavar="VALUE", help="What registers have before any write (nil)."
        ),
    ] = None,
    sequential_keys: Annotated[
        bool | None,
        typer.Option(
            "--sequential-keys/--no-sequential-keys",
            help="Each key of rw-register is sequentially consistent by itself.",
        ),
    ] = None,
    linearizable_keys: Annotated[
        bool | None,
        typer.Option(
            "--linearizable-keys/--no-linearizable-keys",
            help="Each key of rw-register is linearizable by itself.",
        ),
    ] = None,
    wfr_keys: Annotated[
        bool | None,
        typer.Option(
            "--wfr-keys/--no-wfr-keys",
            help="In transactions of rw-register, writes follow reads of their key.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="spark|inline",
            help="Where the checkers run (spark if it is installed; inline for an external history).",
        ),
    ] = None,
    spark_master: Master = None,
    known: Known = Allowed.DOCUMENTED.value,
    store: Store = Path("store"),
    is_verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Judge a run again, an interrupted one too; or a history from elsewhere: Jepsen's EDN, or JSON lines.

    A run that is named by a URI (s3://, gs://, ...) is read where it lies; its results go to the store.
    """
    allowed = allowed_of(known)
    location = parse_location(run_location)
    is_ours = workload is None and not is_external(location)
    chosen = engine_of(engine or (default_engine() if is_ours or spark_master else "inline"))
    spark_master = spark_master_of(spark_master, chosen)
    path = location if isinstance(location, Path) else fetch(location, store).path
    known_workload = foreign.workload_of(path, workload)
    names = checker_names(checkers, known_workload)
    model = model_name(consistency_model, known_workload)
    require_initial(initial, known_workload)
    key_options = {SEQUENTIAL: sequential_keys, LINEARIZABLE: linearizable_keys, WFR: wfr_keys}
    require_keyed(key_options, known_workload)
    others = {"--checkers": checkers, "--consistency-model": consistency_model}
    asked = anomaly_names(
        anomalies,
        known_workload,
        other_options=[option for option, value in others.items() if value is not None],
    )
    if workload is None:
        directory = RunDirectory.open(path)
    else:
        directory = foreign.bring_in(path, workload, store, ["nemesis", *sys.argv[1:]])
    outcome = judge.judge(
        directory,
        checkers=names,
        consistency_model=model,
        anomalies=asked,
        initial=initial,
        key_options=key_options,
        engine=chosen,
        spark_master=spark_master,
        known=allowed,
    )
    if names is not None and workload is None:
        note_kept_results(directory, outcome, judge.read_outcome(directory))
    say_outcome(directory, outcome, as_json=as_json, is_verbose=is_verbose)


def is_external(location: Path | RemotePath) -> bool:
    """Whether a run was made of an external history; False for a run that cannot be read: its judge says why."""
    if not isinstance(location, Path) or not (location / "run.json").exists():
        return False
    try:
        return bool(RunDirectory.open(location).read_info().foreign)
    except HistoryError:
        return False
