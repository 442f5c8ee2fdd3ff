"""From a run's raw files to its verdict and report: collect what was left behind, ingest, check,
render.

``nemesis run`` does this at its end, ``nemesis check`` again at any time, also for a run that was
interrupted.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path

import msgspec

from nemesis import reports
from nemesis.checkers import (
    CHECKERS,
    foreign_properties,
    judged_by_default,
    not_observed,
    recorded,
    select,
    select_foreign,
)
from nemesis.checkers.checking import check
from nemesis.checkers.cycles.models import WELL_FORMED
from nemesis.checkers.foreign import asked_properties
from nemesis.checkers.framework.engine import Engine
from nemesis.checkers.framework.model import Outcome, Verdict, combine
from nemesis.checkers.framework.property import Check
from nemesis.history import spark
from nemesis.history.errors import HistoryError
from nemesis.history.quorum_files import METADATA_LOG, SEGMENTS, SNAPSHOTS
from nemesis.history.reader import open_history
from nemesis.history.renewal import renew
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.spark_cluster import is_local
from nemesis.judging import foreign
from nemesis.judging.ignored_settings import ignored_settings
from nemesis.judging.known.marking import Allowed, marked, without_unlisted
from nemesis.judging.objectives import objectives_of, with_objectives
from nemesis.judging.planted import planted_story
from nemesis.judging.warm_spark import warm_spark
from nemesis.support.errors import UsageError
from nemesis.support.paths import short

UNNOTICED = "unnoticed"
"""The value of a scenario's ``expect`` that allows a run whose faults are all too short to be noticed."""
_Checked = Callable[[Sequence[Check]], Outcome]
"""Runs checks over the history of the run."""


def judge(
    run: RunDirectory,
    *,
    checkers: Sequence[str] | None = None,
    consistency_model: str | None = None,
    anomalies: Sequence[str] | None = None,
    initial: str | None = None,
    key_options: Mapping[str, bool | None] | None = None,
    engine: Engine = "spark",
    spark_master: str | None = None,
    known: Allowed = Allowed.DOCUMENTED,
) -> Outcome:
    """Ingest the run's raw files, check them, write results and report; return what it came to.

    Where raw files are gone, what was made of them is checked. ``checkers`` names the properties (``None``: all),
    ``consistency_model`` what transactions have to keep and ``initial`` what registers have before any write, as EDN
    (``None``: as when they were last checked), ``anomalies`` what counts in place of a model (``None``: likewise),
    ``key_options`` whether options about keys hold (likewise),
    ``known`` which known behaviour of Kafka does not count in the verdict.
    Blocks. Raises ``HistoryError`` when the run cannot be used and OSError when it cannot be written.
    """
    # Compiled code and Arrow let go of Python's lock: what renders reports is imported, and reads, meanwhile.
    background = ThreadPoolExecutor(1)
    background.submit(import_module, reports.RENDERER)
    start = partial(spark.context, spark_master) if engine == "spark" else None
    with _starting_spark(spark_master) if start is not None else nullcontext():
        salvage(run)
        began = time.monotonic()
        renew(run, start)
    # Not beside Spark's tasks, which have the memory of this machine.
    page = background.submit(reports.read_shown, run) if engine == "inline" else None
    ingest_s = round(time.monotonic() - began, 3)
    info = run.read_info()
    workload = info.foreign.get("workload")
    if consistency_model is not None:
        info.foreign = {**info.foreign, "consistency_model": consistency_model}
        info.foreign.pop("anomalies", None)
    if anomalies is not None:
        info.foreign = {**info.foreign, "anomalies": list(anomalies)}
        info.foreign.pop("consistency_model", None)
    if initial is not None:
        info.foreign = {**info.foreign, "initial": initial}
    chosen = {name: value for name, value in (key_options or {}).items() if value is not None}
    if chosen:
        kept = [name for name in info.foreign.get("key_options", ()) if name not in chosen]
        kept += [name for name, value in chosen.items() if value]
        info.foreign = {**info.foreign, "key_options": kept}
    checked = partial(
        check, run.history, engine=engine, spark_master=spark_master, observed=info.observes
    )
    if workload is None:
        every = partial(checked, keeps_unlisted=True)
        outcome = without_unlisted(marked(run, _outcome_of_ours(info, checkers, every), known))
    else:
        outcome = _outcome_of_foreign(run, info, workload, checkers, checked)
    durations_s = {**info.durations_s, "ingest": ingest_s, "check": round(outcome.seconds, 3)}
    run.write_info(msgspec.structs.replace(info, durations_s=durations_s))
    # Under another model or initial value the earlier results are of other promises.
    is_same = consistency_model is None and anomalies is None and initial is None and not chosen
    is_partial = checkers is not None and is_same and run.results_file.exists()
    notes = [
        *info.foreign.get("notes", ()),
        *ignored_settings(info.target, open_history(run.history)),
    ]
    shown = merged(read_outcome(run), outcome) if is_partial else outcome
    reports.write(
        run,
        shown,
        notes,
        story=planted_story(info),
        shown=None if page is None else page.result(),
    )
    return outcome


def _outcome_of_ours(info: RunInfo, names: Sequence[str] | None, checked: _Checked) -> Outcome:
    """Return the outcome of these properties (``None``: all) for a run of our own."""
    judgeable = recorded(info.events_format)
    _require_recorded(names or (), judgeable, info.events_format)
    by_default = judged_by_default(info.observes, _workload(info))
    wanted: Sequence[str] = names or [name for name in judgeable if name in by_default]
    unobserved = not_observed(wanted, info.observes)
    hidden = {item.property for item in unobserved}
    judged = [name for name in wanted if name not in hidden]
    outcome = msgspec.structs.replace(
        only(checked(select(judged)), judged), not_observed=unobserved
    )
    if names is not None:
        return outcome
    outcome = with_objectives(_with_noticed_faults(info, outcome), objectives_of(info.config))
    left_out = tuple(name for name in by_default if name not in judgeable)
    return msgspec.structs.replace(outcome, not_recorded=left_out)


def _with_noticed_faults(info: RunInfo, outcome: Outcome) -> Outcome:
    """Return the outcome, with a problem if no fault of the plan could be noticed and the scenario expects it."""
    if not info.plan or len(info.undetectable) < len(info.plan):
        return outcome
    if info.config.get("expect") == UNNOTICED:
        return outcome
    problem = f"no fault of the plan could be detected: {info.undetectable[0]}"
    return msgspec.structs.replace(
        outcome,
        problems=(*outcome.problems, problem),
        verdict=combine([outcome.verdict, Verdict.UNKNOWN]),
    )


def _workload(info: RunInfo) -> str | None:
    """Return the name of the workload of a run of our own; None if the run does not state it."""
    settings = info.config.get("workload")
    name = settings.get("name") if isinstance(settings, dict) else None
    return name if isinstance(name, str) else None


def _outcome_of_foreign(
    run: RunDirectory,
    info: RunInfo,
    workload: str,
    names: Sequence[str] | None,
    checked: _Checked,
) -> Outcome:
    """Return the outcome of these properties (``None``: all of the workload) for an external history."""
    anomalies = info.foreign.get("anomalies", ())
    chosen = select_foreign(
        workload,
        names,
        info.foreign.get("consistency_model"),
        has_real_time=info.foreign.get("has_real_time", True),
        initial=foreign.number_of_initial(run, info.foreign.get("initial")),
        anomalies=anomalies,
        key_options=info.foreign.get("key_options", ()),
    )
    wanted: Collection[str] = foreign_properties(workload)
    if anomalies:
        wanted = {*asked_properties(workload, anomalies), WELL_FORMED}
    if names:
        wanted = {*names, WELL_FORMED}
    return foreign.settle(only(checked(chosen), wanted), run)


@contextmanager
def _starting_spark(master: str | None) -> Iterator[None]:
    """Start Spark beside the block, or, on a cluster, before it: nothing is written before its master has answered.

    A block that fails waits for a JVM that is about to start: it would outlive this process.
    """
    if not is_local(master or spark.DEFAULT_MASTER):
        spark.context(master)
        yield
        return
    starting = warm_spark(master)
    try:
        yield
    except Exception:
        starting.join()
        raise


def _require_recorded(
    names: Collection[str], judgeable: Collection[str], events_format: int
) -> None:
    """Raise ``UsageError`` for a property that needs what runs of this format did not record."""
    for name in names:
        if name not in judgeable:
            raise UsageError(
                f"{name} cannot judge this run: expected events of format {CHECKERS[name].recorded_since} or newer, "
                f"got format {events_format}. Leave it out of --checkers, or run the scenario again"
            )


def only(outcome: Outcome, properties: Collection[str]) -> Outcome:
    """Return the outcome of these properties alone: one check may have decided others on its way."""
    results = tuple(result for result in outcome.results if result.property in properties)
    verdicts = [result.verdict for result in results]
    if outcome.problems:
        verdicts.append(Verdict.UNKNOWN)
    return msgspec.structs.replace(outcome, results=results, verdict=combine(verdicts))


def merged(before: Outcome, now: Outcome) -> Outcome:
    """Return an outcome whose results of a later, partial check replace those of an earlier one.

    What a run does not show or did not record is the same in both.
    """
    replaced = {result.property: result for result in (*before.results, *now.results)}
    results = tuple(replaced.values())
    verdicts = [result.verdict for result in results] + [Verdict.UNKNOWN] * len(now.problems)
    unobserved = {item.property: item for item in (*before.not_observed, *now.not_observed)}
    return msgspec.structs.replace(
        now,
        results=results,
        verdict=combine(verdicts),
        not_recorded=before.not_recorded,
        not_observed=tuple(unobserved.values()),
    )


def read_outcome(run: RunDirectory) -> Outcome:
    """Return the outcome of the last check of this run; raises ``UsageError`` when there is none."""
    try:
        return msgspec.json.decode(run.results_file.read_bytes(), type=Outcome)
    except FileNotFoundError:
        raise UsageError(
            f"{short(run.path)} was never checked: `nemesis check {short(run.path)}` does it"
        ) from None
    except (msgspec.MsgspecError, OSError) as error:
        raise HistoryError(f"{run.results_file} cannot be read: {error}") from None


def salvage(run: RunDirectory) -> None:
    """Bring in the logs of ZooKeeper, or of a KRaft quorum, when the harness died before it could.

    They lie where the servers wrote them; a server that still runs may be writing, which the reader tolerates
    at the end of the last file.
    """
    copies: list[tuple[Path, Path, tuple[str, ...]]] = [
        (data, run.zookeeper / data.parent.name / "version-2", ("log.*",))
        for data in sorted((run.path / "data").glob("zookeeper-*/version-2"))
    ]
    voters = "controller-*" if run.read_info().controllers else "broker-*"
    copies += [
        (data, run.quorum / data.relative_to(run.path / "data").parts[0], (SEGMENTS, SNAPSHOTS))
        for data in sorted((run.path / "data").glob(f"{voters}/**/{METADATA_LOG}"))
    ]
    for data, target, patterns in copies:
        logs = sorted(log for pattern in patterns for log in data.glob(pattern))
        if all(_is_copied(log, target / log.name) for log in logs):
            continue
        draft = target.with_name(f"{target.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for log in logs:
            shutil.copy2(log, draft / log.name)
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)


def _is_copied(log: Path, copy: Path) -> bool:
    """Whether the copy is whole and as new: the copy of a harness that was killed may be neither."""
    if not copy.exists():
        return False
    source, target = log.stat(), copy.stat()
    return (source.st_size, source.st_mtime_ns) == (target.st_size, target.st_mtime_ns)
