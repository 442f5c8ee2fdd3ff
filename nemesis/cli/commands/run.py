"""``nemesis run``: break the cluster, record everything, judge it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from nemesis.cli import completions
from nemesis.cli.console import err, note
from nemesis.cli.options import (
    BrokerPropertyList,
    Checkers,
    FaultNames,
    Json,
    Known,
    Master,
    MutantName,
    ScenarioName,
    Store,
    TimeLimit,
    Verbose,
    broker_count,
    target_options,
    whole_number,
)
from nemesis.cli.outcome import say_outcome
from nemesis.history.errors import SparkError
from nemesis.judging.judge import judge
from nemesis.judging.known.marking import Allowed, allowed_of
from nemesis.judging.warm_spark import warm_spark
from nemesis.running.launch import launch
from nemesis.running.preflight import (
    RunOptions,
    RunRequest,
    create_run_directory,
    make_ready,
    prepare,
)
from nemesis.support.errors import HarnessError
from nemesis.support.interrupts import Interrupted
from nemesis.support.paths import short


def run(
    scenario_name: ScenarioName,
    target: Annotated[
        str | None,
        typer.Option("--target", help="What is run.", autocompletion=completions.targets),
    ] = None,
    kafka_version: Annotated[
        str | None,
        typer.Option("--kafka-version", metavar="X.Y.Z", help="Of the targets kafka and mixed."),
    ] = None,
    kafka_home: Annotated[
        Path | None,
        typer.Option("--kafka-home", metavar="DIR", help="Kafka from this directory."),
    ] = None,
    controllers: Annotated[
        int | None,
        typer.Option(
            "--controllers",
            metavar="N",
            parser=whole_number,
            help="Of Kafka with KRaft: N controllers that are not brokers; 0: each broker is one.",
        ),
    ] = None,
    broker_logs: Annotated[
        bool,
        typer.Option(
            "--broker-logs",
            help="Of the target kafka: judge what its brokers log of replicas, too.",
        ),
    ] = False,
    reference: Annotated[
        int | None,
        typer.Option(
            "--reference",
            metavar="N",
            parser=whole_number,
            help="Of the target mixed: brokers 1 to N run the reference.",
        ),
    ] = None,
    kafka: Annotated[
        int | None,
        typer.Option("--kafka", metavar="N", parser=whole_number, help="And the next N run Kafka."),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option("--runtime", help="Where it is run.", autocompletion=completions.runtimes),
    ] = None,
    brokers: Annotated[
        int | None, typer.Option("--brokers", metavar="N", parser=whole_number)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", parser=whole_number, help="Default: random."),
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
            "--engine",
            metavar="spark|inline",
            help="Default: inline for a simulation and without PySpark, else spark.",
        ),
    ] = None,
    spark_master: Master = None,
    known: Known = Allowed.DOCUMENTED.value,
    store: Store = Path("store"),
    is_verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Run a scenario: break the cluster, record everything, judge it."""
    allowed = allowed_of(known)
    request = prepare(
        RunOptions(
            scenario=scenario_name,
            store=store,
            target=target,
            target_options=target_options(
                kafka_version, kafka_home, reference, controllers, broker_logs=broker_logs
            ),
            runtime=runtime,
            brokers=broker_count(brokers, reference, kafka),
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
    make_ready(request, note)
    directory = create_run_directory(request, ["nemesis", *sys.argv[1:]])
    note(f"run {short(directory.path)}: {_about(request)}")
    launch(request, directory, err, on_faults_over=lambda: _start_spark_early(request))
    again = f"nemesis check {short(directory.path)} --engine inline"
    try:
        note("checking")
        outcome = judge(
            directory,
            checkers=request.checkers,
            engine=request.engine,
            spark_master=request.spark_master,
            known=allowed,
        )
    except SparkError as error:
        raise HarnessError(f"{error}; what was recorded is kept: `{again}` judges it") from error
    except KeyboardInterrupt:
        kept = f"interrupted: what was recorded is kept, `{again}` judges it"
        raise Interrupted(kept) from None
    say_outcome(directory, outcome, as_json=as_json, is_verbose=is_verbose)


def _about(request: RunRequest) -> str:
    """Return what the run is about, in one line."""
    scenario = request.scenario
    bug = "" if request.mutant is None else f", planted bug {request.mutant.name}"
    kinds = Counter(planned.fault.name for planned in request.plan)
    listed = ", ".join(f"{kind} ({n})" if n > 1 else kind for kind, n in kinds.items())
    faults = f"{len(request.plan)} faults planned" + (f": {listed}" if listed else "")
    return f"{scenario.target} on {scenario.runtime}{bug}, seed {request.seed}; {faults}"


def _start_spark_early(request: RunRequest) -> None:
    """Start Spark beside the run's quiet end, so that the checks need not wait for it."""
    if request.engine == "spark":
        warm_spark(request.spark_master)
