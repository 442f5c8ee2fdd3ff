"""The command line: the commands, and what becomes of their errors.

Exit codes: 0 valid, 1 invalid, 2 unknown; 254 what the user asked for cannot be (one sentence on
stderr, nothing written); 255 the harness failed or was interrupted, so there is no verdict. The
last line of every run is the verdict, the report's path and the replay command.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

import reports
from checkers import CHECKERS, FOREIGN, foreign_properties
from checkers.model import Outcome
from history.errors import HistoryError, SparkError
from history.remote import place as place_of
from history.run_directory import RunDirectory
from nemesis import doctor, foreign, judge, scenario
from nemesis.commands.explore import explore
from nemesis.commands.export import export
from nemesis.commands.mutants import mutants
from nemesis.commands.options import (
    BrokerPropertyList,
    Checkers,
    EngineName,
    FaultNames,
    Json,
    Master,
    MutantName,
    RunPath,
    RunPlace,
    ScenarioName,
    Store,
    TimeLimit,
    whole,
)
from nemesis.commands.replay import replay
from nemesis.commands.shrink import shrink_run
from nemesis.commands.speech import err, note, out, say_error, say_json
from nemesis.errors import EXIT_CRASH, EXIT_USAGE, HarnessError, NemesisError
from nemesis.faults import FAULTS
from nemesis.fetch import fetch
from nemesis.interrupts import Interrupted
from nemesis.launch import launch
from nemesis.mutants import MUTANTS
from nemesis.paths import short
from nemesis.preflight import RunOptions, engine_of, make_ready, place, prepare, spark_master_of
from nemesis.runtimes.base import FaultUnsupported, RuntimeFailure
from nemesis.targets import TARGETS
from reports.liveness import measured
from workloads import WORKLOADS

EXIT_OF_TYPER_AFTER_CTRL_C = 130
"""Typer turns KeyboardInterrupt into this code, without a word; no command of ours has it."""
INTERRUPTED = "interrupted"

app = typer.Typer(
    name="nemesis",
    help="Break a Kafka-style cluster on purpose, and prove from the record whether it kept its promises.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command()
def run(
    scenario_name: ScenarioName,
    target: Annotated[str | None, typer.Option("--target", help="What is run.")] = None,
    runtime: Annotated[str | None, typer.Option("--runtime", help="Where it is run.")] = None,
    brokers: Annotated[int | None, typer.Option("--brokers", metavar="N", parser=whole)] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", parser=whole, help="Default: random.")
    ] = None,
    time_limit: TimeLimit = None,
    faults: FaultNames = None,
    broker_property: BrokerPropertyList = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="This plan instead of the seed's.")
    ] = None,
    mutant: MutantName = None,
    checkers: Checkers = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="spark|inline", help="Default: inline for a simulation, else spark."
        ),
    ] = None,
    spark_master: Master = None,
    store: Store = Path("store"),
    as_json: Json = False,
) -> None:
    """Run a scenario: break the cluster, record everything, judge it."""
    order = prepare(
        RunOptions(
            scenario=scenario_name,
            store=store,
            target=target,
            runtime=runtime,
            brokers=brokers,
            seed=seed,
            time_limit_s=time_limit,
            faults=faults,
            broker_properties=broker_property or (),
            plan=plan,
            mutant=mutant,
            checkers=checkers,
            engine=engine,
            spark_master=spark_master,
        )
    )
    make_ready(order, note)
    directory = place(order, ["nemesis", *sys.argv[1:]])
    kinds = ", ".join(dict.fromkeys(planned.fault.name for planned in order.plan))
    note(
        f"run {short(directory.path)}: seed {order.seed}, faults planned: {len(order.plan)}"
        + (f" ({kinds})" if kinds else "")
    )
    launch(order, directory, err)
    again = f"nemesis check {short(directory.path)} --engine inline"
    try:
        note("checking")
        outcome = judge.judge(
            directory,
            checkers=order.checkers,
            engine=order.engine,
            spark_master=order.spark_master,
        )
    except SparkError as error:
        raise HarnessError(f"{error}; what was recorded is kept: `{again}` judges it") from error
    except KeyboardInterrupt:
        kept = f"interrupted: what was recorded is kept, `{again}` judges it"
        raise Interrupted(kept) from None
    _say_outcome(directory, outcome, as_json=as_json)


@app.command()
def check(
    run_place: RunPlace,
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
            help="What transactions have to keep (serializable).",
        ),
    ] = None,
    engine: EngineName = "spark",
    spark_master: Master = None,
    store: Store = Path("store"),
    as_json: Json = False,
) -> None:
    """Judge a run again, an interrupted one too; or a history from elsewhere: Jepsen's EDN, or JSON lines.

    A run that is named by a URI (s3://, gs://, ...) is read where it lies; its results go to the store.
    """
    where, chosen = place_of(run_place), engine_of(engine)
    spark_master = spark_master_of(spark_master, chosen)
    path = where if isinstance(where, Path) else fetch(where, store).path
    known_workload = foreign.workload_of(path, workload)
    names = judge.checker_names(checkers, known_workload)
    judge.require_model(consistency_model, known_workload)
    if workload is None:
        directory = RunDirectory.open(path)
    else:
        directory = foreign.bring_in(path, workload, store, ["nemesis", *sys.argv[1:]])
    outcome = judge.judge(
        directory,
        checkers=names,
        consistency_model=consistency_model,
        engine=chosen,
        spark_master=spark_master,
    )
    _say_outcome(directory, outcome, as_json=as_json)


@app.command()
def report(path: RunPath, as_json: Json = False) -> None:
    """Write the report of a run again from its last check."""
    directory = RunDirectory.open(path)
    outcome = judge.read_outcome(directory)
    reports.write(directory, outcome)
    _say_outcome(directory, outcome, as_json=as_json)


app.command()(export)
app.command()(replay)
app.command()(explore)
app.command()(mutants)
app.command("shrink")(shrink_run)


@app.command("list")
def list_everything(as_json: Json = False) -> None:
    """Name scenarios, targets, runtimes, faults, workloads, checkers, foreign workloads, mutants."""
    found: dict[str, dict[str, str]] = {
        "scenarios": {name: scenario.load(name).summary for name in scenario.names()},
        "targets": dict.fromkeys(TARGETS, ""),
        "runtimes": dict.fromkeys(scenario.RUNTIMES, ""),
        "faults": {name: fault.summary for name, fault in FAULTS.items()},
        "workloads": dict.fromkeys(WORKLOADS, ""),
        "checkers": dict.fromkeys(CHECKERS, ""),
        "foreign": {name: ", ".join(foreign_properties(name)) for name in FOREIGN},
        "mutants": {name: mutant.story for name, mutant in MUTANTS.items()},
    }
    if as_json:
        say_json({axis: list(names) for axis, names in found.items()})
        return
    for axis, names in found.items():
        out.print(f"{axis}:")
        for name, summary in names.items():
            out.print(f"  {name:<32} {summary}".rstrip())


@app.command("doctor")
def examine(store: Store = Path("store"), as_json: Json = False) -> None:
    """Say what is missing on this machine, and how to get it."""
    checks = doctor.examine(store)
    if as_json:
        say_json([_check_as_json(item) for item in checks])
    else:
        for item in checks:
            mark = "ok" if item.ok else "MISSING" if item.is_required else "note"
            cure = f": {item.cure}" if item.cure else ""
            out.print(f"{mark:<8} {item.name:<18} {item.detail}{cure}")
    if any(item.is_required and not item.ok for item in checks):
        raise typer.Exit(EXIT_USAGE)


@app.command("clean")
def clean_up(as_json: Json = False) -> None:
    """End the processes and containers, and return the addresses, of runs whose harness is dead."""
    from nemesis.clean import clean

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


def call(arguments: list[str]) -> int:
    """Run one command; return its exit code. Never raises, never shows a stack trace."""
    try:
        code = typer.main.get_command(app).main(
            args=arguments or ["--help"], prog_name="nemesis", standalone_mode=False
        )
    except (NemesisError, FaultUnsupported, RuntimeFailure, HistoryError, SparkError) as error:
        say_error(str(error))
        return _exit_code(error)
    except (Interrupted, KeyboardInterrupt, typer.Abort) as error:
        say_error(str(error) or INTERRUPTED)
        return EXIT_CRASH
    except Exception as error:  # noqa: BLE001 - the edge of the program: whatever it is becomes one sentence
        if (format_message := getattr(error, "format_message", None)) is not None:
            say_error(f"{format_message().rstrip('.')}: `nemesis --help` says what is allowed")
            return EXIT_USAGE
        say_error(f"nemesis itself failed ({_brief(error)}): the stack trace is in {_keep_trace()}")
        return EXIT_CRASH
    if code == EXIT_OF_TYPER_AFTER_CTRL_C:
        say_error(INTERRUPTED)
        return EXIT_CRASH
    return code if isinstance(code, int) else 0


def _exit_code(error: Exception) -> int:
    if isinstance(error, NemesisError):
        return error.exit_code
    return EXIT_CRASH if isinstance(error, RuntimeFailure) else EXIT_USAGE


def _say_outcome(run_directory: RunDirectory, outcome: Outcome, *, as_json: bool) -> None:
    """Print results and, last, the line that everybody looks for; exits with the verdict's code."""
    replay = run_directory.read_info().replay
    report_file = short(run_directory.report_file)
    if as_json:
        say_json(
            {
                "verdict": outcome.verdict.value,
                "run": str(run_directory.path),
                "report": str(run_directory.report_file),
                "replay": replay,
                "outcome": msgspec.to_builtins(outcome),
            }
        )
        raise typer.Exit(outcome.verdict.exit_code)
    for problem in outcome.problems:
        out.print(f"problem: {problem}")
    for result in outcome.results:
        count = result.finding_count
        findings = f", {count} finding{'s' * (count > 1)}" if count else ""
        out.print(
            f"{result.verdict.value:<8} {result.property:<24} {result.checked} {result.unit}{findings}"
        )
        for nth, finding in enumerate(result.findings[:3]):
            out.print(f"         {finding.key}: {finding.sentence}")
            for number, step in enumerate(finding.steps if nth == 0 else (), start=1):
                out.print(f"           {number}. {step}")
        for line in measured(result):
            out.print(f"         {line}")
    out.print(f"{outcome.verdict.value}; report: {report_file}; replay: {replay}")
    raise typer.Exit(outcome.verdict.exit_code)


def _check_as_json(item: doctor.Check) -> dict[str, Any]:
    return {
        "name": item.name,
        "ok": item.ok,
        "detail": item.detail,
        "cure": item.cure,
        "required": item.is_required,
    }


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _keep_trace() -> str:
    """Write the present stack trace to a file of its own and return where it is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="nemesis-crash-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            log.write(f"command: {shlex.join(sys.argv)}\n\n{traceback.format_exc()}")
            return log.name
    except OSError as error:
        return f"no file ({error.strerror})"
