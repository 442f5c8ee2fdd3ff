"""The page: one HTML file that needs nothing else, and may reach for nothing else.

Markup, style and script are in ``templates/``. All values pass through Jinja's autoescaping. A content security policy
in the page forbids the browser every request, so that the page stays the same wherever it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.checkers.framework.nouns import noun_for
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind
from nemesis.history.run_directory import RunInfo
from nemesis.history.sources import JUDGED, EventSource
from nemesis.reports import clients, figures, series, wording
from nemesis.reports.charts.paths import HEIGHT, WIDTH
from nemesis.reports.charts.scale import time_ticks
from nemesis.reports.consumer_groups import groups_panel
from nemesis.reports.containers import NamedContainer
from nemesis.reports.liveness import lasted, liveness, without_controller
from nemesis.reports.marks import Marks
from nemesis.reports.pictures import Numbered, Pictures
from nemesis.reports.shown import Shown
from nemesis.reports.states import states
from nemesis.reports.stories import judged_properties, removed_by_shrinking, with_issues
from nemesis.reports.strip import strip
from nemesis.reports.template_cache import template_cache
from nemesis.reports.terms import controller_terms
from nemesis.reports.transactions import transactions_panel
from nemesis.reports.values import Values

_COMPILED: Final[Mapping[str, Any]] = MappingProxyType(
    {"optimized": False, "trim_blocks": True, "lstrip_blocks": True}
)
"""How templates are compiled."""


def render(
    info: RunInfo,
    outcome: Outcome,
    shown: Shown,
    containers: Sequence[NamedContainer] = (),
    notes: Sequence[str] = (),
    story: str = "",
) -> str:
    """Return the page, with ``notes`` as sentences, and the ``story`` of the planted bug.

    Raises HistoryError when the history cannot be read.
    """
    history, run, operations = shown.history, shown.run, shown.operations
    numbered = _numbered(outcome)
    is_timed = info.foreign.get("is_timed", True)
    values = Values.of(history, run.origin_ns)
    pictures = Pictures(history, values, is_foreign=bool(info.foreign), is_timed=is_timed)
    numbered = pictures.given_to(numbered)
    marks = Marks.of(run, _proof_times(outcome, values))
    missing = liveness(outcome, run.origin_ns, run.duration_s)
    without = without_controller(outcome, run.origin_ns)
    terms, _ = controller_terms(run, without)
    epochs, epochs_left_out = figures.leader_epochs(run)
    most = figures.points_per_line(run)
    drawn = {
        "liveness": None if missing is None else missing.chart,
        "controllers": figures.controllers(run, without),
        "leader-epochs": epochs,
        **{f"operations-{number}": chart for number, chart in enumerate(shown.rates.values())},
    }
    environment = _environment()
    return environment.get_template("report.html").render(
        info=info,
        is_timed=is_timed,
        target=_target(info),
        containers=containers,
        outcome=outcome,
        results={result.property: result for result in outcome.results},
        headline=_headline(outcome),
        extent=[
            *wording.not_observed(outcome),
            *wording.in_part(outcome),
            *wording.known(outcome),
            *notes,
        ],
        found=numbered,
        groups=_grouped(numbered),
        run=run,
        not_begun=_not_begun(info, run),
        left_out=info.left_out,
        undetectable=info.undetectable,
        drawn=drawn,
        operations=operations,
        events_by_kind=(
            _client_facts(run, operations, is_timed=is_timed)
            if info.foreign
            else _facts(run, shown.rows, info)
        ),
        missing=missing,
        consumer_groups=groups_panel(info, history, run),
        transactions=transactions_panel(history, run),
        epochs_left_out=epochs_left_out,
        points_per_line=most,
        first_partition=_first_partition(run, numbered),
        numbers=[
            (result.property, *wording.quantity(name, value))
            for result in outcome.results
            for name, value in result.numbers.items()
            if not result.distributions
        ],
        strip=strip(run, marks, terms, outcome, operations),
        states=states(run, marks, terms),
        marks=marks,
        box=(WIDTH, HEIGHT),
        time_ticks=time_ticks(run.duration_s),
        replicas=[(item.name, figures.replicas(item, run, most)) for item in run.partitions],
        values=values,
        story=story,
        properties=judged_properties(outcome),
    )


def _target(info: RunInfo) -> str:
    """Return the target and what was chosen of it: ``kafka 3.9.1, controllers 3``."""
    chosen = [
        name if value == JUDGED else f"{name.removesuffix('-version')} {value}"
        for name, value in info.config.get("target_options", {}).items()
    ]
    is_named = any(choice.startswith(f"{info.target} ") for choice in chosen)
    return ", ".join(chosen if is_named else [info.target, *chosen])


def _not_begun(info: RunInfo, run: series.RunSeries) -> list[str]:
    """Return the planned faults that were neither begun nor skipped: the time of the faults ended before."""
    begun = {fault.fault_id for fault in run.faults}
    return [
        f"{planned['fault']} at {planned['at_s']:g} s"
        for fault_id, planned in enumerate(info.plan or [])
        if fault_id not in begun
    ]


def _headline(outcome: Outcome) -> str:
    """What was proved or refuted, in one sentence."""
    total, events = len(outcome.results), f"{outcome.events:,} events"
    unseen = len(outcome.not_observed)
    beyond = f" {unseen} more could not be observed." if unseen else ""
    known = sum(map(wording.is_broken_as_known, outcome.results))
    named = {
        verdict: [result.property for result in outcome.results if result.verdict is verdict]
        for verdict in Verdict
    }
    broken, undecided = named[Verdict.INVALID], named[Verdict.UNKNOWN]
    if broken:
        return f"{len(broken)} of {total} properties broken over {events}: {', '.join(broken)}.{beyond}"
    if undecided:
        names = ", ".join(undecided)
        none = f"{known} are broken by known behaviour" if known else "None is broken"
        return f"{len(undecided)} of {total} properties undecided over {events}: {names}. {none}.{beyond}"
    if not total:
        return f"No property was judged over {events}.{beyond}"
    if outcome.verdict is Verdict.UNKNOWN:
        held = f"{total - known} of" if known else "All"
        return f"{held} {total} properties held over {events}, but the history is not whole."
    if known:
        held = f"{total - known} of {total} properties held over {events}"
        return f"{held}, {known} are broken by known behaviour.{beyond}"
    if unseen:
        return f"All {total} properties that could be observed held over {events}.{beyond}"
    return f"All {total} properties held over {events}."


def _numbered(outcome: Outcome) -> list[Numbered]:
    """All findings, what is broken first, then what is undecided, then what is allowed."""
    verdicts = (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID)
    findings = [finding for result in outcome.results for finding in result.findings]
    findings.sort(key=lambda finding: verdicts.index(finding.verdict))
    return [Numbered(f"finding-{n}", finding) for n, finding in enumerate(findings, start=1)]


def _grouped(numbered: Iterable[Numbered]) -> list[list[Numbered]]:
    """The findings of one property and verdict together, in the order of ``found``."""
    return [
        list(group)
        for _, group in groupby(
            numbered, lambda entry: (entry.finding.verdict, entry.finding.property)
        )
    ]


def _proof_times(outcome: Outcome, values: Values) -> list[float]:
    """When each broken property was first proved to be: the last event of its earliest finding, in seconds."""
    times_s = set()
    for result in outcome.results:
        proofs = [
            [time_ns for event in finding.events if (time_ns := values.time_ns(event)) is not None]
            for finding in result.findings
            if finding.verdict is Verdict.INVALID
        ]
        ends = [max(times_ns) for times_ns in proofs if times_ns]
        if ends:
            times_s.add((min(ends) - values.origin_ns) / series.NS)
    return sorted(times_s)


def _facts(run: series.RunSeries, rows: Segment, info: RunInfo) -> list[tuple[str, str]]:
    """A few counts that say what the run went through."""
    applied = sum(fault.start_s is not None for fault in run.faults)
    facts = [("run time", f"{run.duration_s:,.1f} s"), ("faults applied", f"{applied:,}")]
    return [*facts, *(_traced_facts(run, rows) if EventSource.TRACES in info.observes else ())]


def _traced_facts(run: series.RunSeries, rows: Segment) -> list[tuple[str, str]]:
    """Those that only brokers report."""
    return [
        ("controllers elected", f"{sum(not reign.resigned for reign in run.reigns):,}"),
        (
            "leaders elected",
            f"{sum(len(partition.leader_epochs) for partition in run.partitions):,}",
        ),
        ("partitions", f"{len(run.partitions):,}"),
        ("truncations", f"{int(rows.is_kind(Kind.TRUNCATE).sum()):,}"),
        ("logs loaded", f"{int(rows.is_kind(Kind.LOG_LOADED).sum()):,}"),
    ]


def _client_facts(
    run: series.RunSeries, operations: Mapping[str, clients.Operations], *, is_timed: bool
) -> list[tuple[str, str]]:
    """The counts of a history that tells of clients alone."""
    counts = [operation.counts() for operation in operations.values()]
    return [
        *([("from first to last event", f"{run.duration_s:,.3f} s")] if is_timed else []),
        *(
            (f"operations {ended}", f"{sum(count[ended] for count in counts):,}")
            for ended in ("ok", "fail", "info", "open")
        ),
    ]


def _first_partition(run: series.RunSeries, numbered: Sequence[Numbered]) -> str | None:
    """The partition to show first: that of the first broken finding that names one, else the busiest."""
    names = {partition.name for partition in run.partitions}
    for entry in numbered:
        if entry.finding.verdict is Verdict.INVALID and entry.finding.key in names:
            return entry.finding.key
    busiest = max(run.partitions, key=lambda partition: partition.activity, default=None)
    return None if busiest is None else busiest.name


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("nemesis.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        bytecode_cache=template_cache(_COMPILED),
        **_COMPILED,
    )
    environment.globals["noun_for"] = noun_for
    environment.filters["labels"] = wording.labels
    environment.tests["broken_as_known"] = wording.is_broken_as_known
    environment.filters["promise"] = wording.promise
    environment.filters["with_issues"] = with_issues
    environment.filters["removed_by_shrinking"] = removed_by_shrinking
    environment.filters["lasted"] = lasted
    environment.filters["measured"] = wording.measured
    environment.filters["phases"] = wording.phases
    environment.filters["yaml"] = _yaml
    environment.filters["script_json"] = _script_json
    return environment


def _yaml(value: Any) -> str:
    import yaml  # only reports with a plan have any

    plain = msgspec.to_builtins(value)
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
    return text.rstrip()


def _script_json(data: Any) -> Markup:
    """JSON that no parser of HTML can mistake for markup."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704
