"""``nemesis check FILE --workload W``: a history from elsewhere becomes a run, and is judged as one.

``bring_in`` makes the run's directory, ``settle`` says an outcome in the names of the history it came from. From a
history that may lack operations no conviction follows that one of those could explain: it becomes ``unknown``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.checkers import FOREIGN
from nemesis.checkers.foreign import is_explained_later, is_self_evident
from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict, combine
from nemesis.checkers.initial_values import NIL
from nemesis.history.errors import DamagedHistoryError, ForeignHistoryError
from nemesis.history.foreign.edn import Symbol, loads
from nemesis.history.foreign.importing import (
    WORKLOADS,
    ForeignFile,
    read_file,
    sha256_of,
    size_of,
    write_events,
)
from nemesis.history.foreign.names import FIRST_NAME, Names
from nemesis.history.foreign.plain.events import write_plain
from nemesis.history.foreign.plain.histories import PlainHistory, read_plain
from nemesis.history.foreign.sessions import is_directory_of_logs
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.sources import EventSource
from nemesis.judging.foreign_lines import located
from nemesis.support.choices import one_of
from nemesis.support.errors import MissingRequirement, UsageError
from nemesis.support.paths import short
from nemesis.support.runtime_names import SIMULATION

PROCESS: Final = "clients"
_OPTION: Final = re.compile(r"--initial (\d+)\.")
"""An option of a command whose value is a number of ``Names``."""
EXPLICABLE: Final = "Operations may be missing from this history, and one of them may explain it."
UNKNOWN_CHANGE: Final = (
    "An operation changed an object in an unknown way, or may have, and this may explain it."
)


def workload_of(path: Path, workload: str | None) -> str | None:
    """Return the workload by which a path is judged: the one said, or the one that a run knows; None: a run of ours.

    Raises ``UsageError`` when it must be said and is not, or the reverse; HistoryError for a damaged run.
    """
    if workload is not None:
        one_of("workload", workload, FOREIGN)
        if path.is_dir() and not is_directory_of_logs(path):
            raise UsageError(
                f"--workload {workload} is for a file, and {path} is a directory: a run knows its own workload"
            )
        return workload
    if path.is_file():
        raise UsageError(
            f"{path} is a file: a history from elsewhere needs --workload, one of {', '.join(FOREIGN)}"
        )
    if (path / "run.json").exists():
        about = RunDirectory.open(path).read_info().foreign
        if about and not _is_whole(about):
            raise DamagedHistoryError(f"{path / 'run.json'} does not say what the history is of")
        return about.get("workload")
    return None


def _is_whole(about: dict[str, Any]) -> bool:
    """Whether a run knows of its foreign history what is needed to judge it."""
    wanted = {
        "workload",
        "file",
        "bytes",
        "sha256",
        "operations",
        "problems",
        "may_lack_operations",
    }
    return wanted <= about.keys() and about["workload"] in FOREIGN


def bring_in(path: Path, workload: str, store: Path, command_line: Sequence[str]) -> RunDirectory:
    """Make a run of a file; raises HistoryError for what is no history, ``MissingRequirement`` for a bad store.

    Nothing is left in the store then.
    """
    # Imported here: it knows of clusters, and most checks are of runs that have theirs written down.
    from nemesis.running.versions import versions

    with ThreadPoolExecutor(1) as other_thread:
        digest = other_thread.submit(sha256_of, path)
        plain = _plain(path, workload)
        file = read_file(path) if plain is None else None
    if file is not None:
        _require_workload(file, path, workload)
    info = RunInfo(
        scenario=workload,
        seed=0,
        target="foreign",
        observes=(EventSource.CLIENTS,),
        runtime="none",
        brokers=0,
        zookeepers=0,
        command_line=list(command_line),
        versions=versions(SIMULATION),
    )
    try:
        source = {"file": str(path.absolute()), "bytes": size_of(path)}
        source["sha256"] = digest.result()
        run = RunDirectory.create(store, info)
        try:
            if plain is not None:
                imported = write_plain(plain, run.path, run.raw_table(PROCESS))
            elif file is not None:
                imported = write_events(file, workload, run.path, run.raw_file(PROCESS))
            info = run.read_info()
            info.replay = f"nemesis check {short(run.path)}"
            info.foreign = {"workload": workload, **source, **msgspec.to_builtins(imported)}
            run.write_info(info)
        except BaseException:
            run.discard()
            raise
    except OSError as error:
        raise MissingRequirement(f"the store {store} cannot be written: {error.strerror}") from None
    return run


def _plain(path: Path, workload: str) -> PlainHistory | None:
    """Return a history that compiled code can read; None for another one."""
    try:
        return read_plain(path, workload)
    except OSError:
        return None


def _require_workload(file: ForeignFile, path: Path, workload: str) -> None:
    """Raise ForeignHistoryError when no operation is of the workload: it is of another one."""
    vocabulary = WORKLOADS[workload]()
    clients = [operation for operation in file.operations if operation.is_of_client]
    if not any(map(vocabulary.function_of, clients)):
        collected = {operation.f or vocabulary.default for operation in clients}
        said = ", ".join(sorted(collected)[:8]) or "none by a client"
        raise ForeignHistoryError(
            f"{path} is no history of workload {workload}: its operations are {said}, and allowed are "
            f"{', '.join(sorted(vocabulary.functions))}"
        )


def number_of_initial(run: RunDirectory, text: str | None) -> int | None:
    """Return the number of an initial value, which is EDN; None if it is not stated. Raises HistoryError, OSError."""
    if text is None:
        return None
    names = Names.read(run.path)
    known, number = len(names), initial_number(text, names)
    if len(names) > known:
        names.write(run.path)
    return number


def initial_number(text: str, names: Names) -> int:
    """Return the number of an initial value, which is EDN or JSON's null; it may be a new name.

    A bare word is a text, as a shell leaves of a text in quotes, unless the history has the word itself.
    """
    value = loads(text)
    if isinstance(value, Symbol) and not names.has(value):
        value = None if value == "null" else str(value)
    return NIL if value is None else names.number(value)


def settle(outcome: Outcome, run: RunDirectory) -> Outcome:
    """Return what an outcome comes to for the history of a run; raises HistoryError."""
    about = run.read_info().foreign
    settled_outcome = settled(
        outcome,
        Names.read(run.path),
        about["workload"],
        is_doubtful=about["may_lack_operations"],
        is_cut_off=about.get("is_cut_off", False),
        may_hide_changes=about.get("may_hide_changes", False),
    )
    return located(settled_outcome, run.path, is_timed=about.get("is_timed", True))


def settled(
    outcome: Outcome,
    names: Names,
    workload: str,
    *,
    is_doubtful: bool,
    is_cut_off: bool,
    may_hide_changes: bool,
) -> Outcome:
    """Return an outcome in the names of its history.

    ``is_doubtful``: operations may be missing from it; ``is_cut_off``: operations after its end may be.
    ``may_hide_changes``: an operation changed an object in a way that no check knows, which may explain any finding.
    """
    doubt = UNKNOWN_CHANGE if may_hide_changes else EXPLICABLE
    results = []
    for result in outcome.results:
        is_in_doubt = is_doubtful and not is_self_evident(workload, result.property)
        may_be_explained = is_cut_off and is_explained_later(workload, result.property)
        may_be_explained |= is_in_doubt or may_hide_changes
        results.append(_settled(result, names, doubt if may_be_explained else ""))
    verdicts = [result.verdict for result in results]
    verdicts += [Verdict.UNKNOWN] * bool(outcome.problems)
    return msgspec.structs.replace(outcome, results=tuple(results), verdict=combine(verdicts))


def _settled(result: Result, names: Names, doubt: str) -> Result:
    findings = [_spoken(finding, names) for finding in result.findings]
    verdict = result.verdict
    if doubt:
        findings = [_doubted(finding, doubt) for finding in findings]
        verdict = Verdict.UNKNOWN if verdict is Verdict.INVALID else verdict
    return msgspec.structs.replace(result, findings=tuple(findings), verdict=verdict)


def _doubted(finding: Finding, doubt: str) -> Finding:
    if finding.verdict is not Verdict.INVALID:
        return finding
    sentence = f"{finding.sentence} {doubt}"
    return msgspec.structs.replace(finding, verdict=Verdict.UNKNOWN, sentence=sentence)


def _spoken(finding: Finding, names: Names) -> Finding:
    """Put names in the place of numbers that stand for them."""
    if not len(names):
        return finding
    return msgspec.structs.replace(
        finding,
        key=names.spoken(finding.key),
        sentence=names.spoken(_in_shell_quotes(finding.sentence, names)),
        steps=tuple(map(names.spoken, finding.steps)),
        events=tuple(
            {column: _named(value, names) for column, value in event.items()}
            for event in finding.events
        ),
    )


def _in_shell_quotes(sentence: str, names: Names) -> str:
    """Put a name into the option that a sentence states, so that a shell leaves it as it is."""
    return _OPTION.sub(lambda match: f"--initial {shlex.quote(names.spoken(match[1]))}.", sentence)


def _named(value: Any, names: Names) -> Any:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, int) and value >= FIRST_NAME:
        return names.spoken(str(value))
    return value
