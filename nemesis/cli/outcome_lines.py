"""The lines about an outcome: what is broken first, then a line for each family of properties, or for each property.

Lines are texts with styles. The console drops the styles where it writes to a pipe or ``NO_COLOR`` is set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from rich.text import Text

from nemesis.checkers import property_named
from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.checkers.framework.nouns import noun_for
from nemesis.cli.families import FAMILIES, OTHERS, family_of
from nemesis.reports import wording
from nemesis.reports.liveness import measured

STYLES: Final[Mapping[Verdict, str]] = MappingProxyType(
    {Verdict.VALID: "green", Verdict.INVALID: "red", Verdict.UNKNOWN: "yellow"}
)
MAX_FINDINGS: Final = 3
"""Of one property; the report has the others."""
INDENT: Final = " " * 9
_RANKS: Final = {family: number for number, family in enumerate((*FAMILIES, OTHERS))}


def lines(outcome: Outcome, *, is_verbose: bool) -> Iterator[Text]:
    """Yield everything but the last line."""
    broken = [result for result in outcome.results if result.verdict is Verdict.INVALID]
    for result in broken:
        yield from _result_lines(result)
    if is_verbose:
        for result in outcome.results:
            if result.verdict is not Verdict.INVALID:
                yield from _result_lines(result)
    else:
        yield from _family_lines(outcome)
    for problem in outcome.problems:
        yield Text(f"problem: {problem}")
    if outcome.not_recorded:
        names = ", ".join(outcome.not_recorded)
        yield Text(f"not judged, because the run's version of nemesis recorded too little: {names}")
    sentences = wording.not_observed(outcome) + wording.in_part(outcome) if is_verbose else ()
    for sentence in (*sentences, *wording.known(outcome)):
        yield Text(sentence)


def verdict_text(outcome: Outcome) -> Text:
    """Return the verdict, what it leaves out, and why it is ``unknown``."""
    text = Text(outcome.verdict.value, STYLES[outcome.verdict])
    text.append(_reach(outcome), "default")
    if outcome.verdict is Verdict.UNKNOWN:
        text.append(f": {why_unknown(outcome)}", "default")
    return text


def why_unknown(outcome: Outcome) -> str:
    """Return the first reason for which nothing is proved, without a full stop, and how many more there are."""
    undecided = [result for result in outcome.results if result.verdict is Verdict.UNKNOWN]
    reasons = [*outcome.problems]
    reasons += [f"{result.property}: {_why_undecided(result)}" for result in undecided]
    if not reasons:
        return "no property was judged"
    more = len(reasons) - 1
    others = f" (and {more} more reason{'s' * (more > 1)})" if more else ""
    return reasons[0].rstrip(".") + others


def _why_undecided(result: Result) -> str:
    for finding in result.findings:
        if finding.verdict is Verdict.UNKNOWN:
            return _stated(finding)
    if not result.checked:
        return f"expected {result.unit} to judge, got none"
    decided = property_named(result.property)
    return "undecided" if decided is None else decided.unknown


def _family_lines(outcome: Outcome) -> Iterator[Text]:
    """Yield a line for each family, and below it what is undecided."""
    results = sorted(outcome.results, key=lambda result: _RANKS[family_of(result.property)])
    for family, members in groupby(results, lambda result: family_of(result.property)):
        of_family = list(members)
        verdicts = [result.verdict for result in of_family]
        valid = verdicts.count(Verdict.VALID)
        count = str(valid) if valid == len(verdicts) else f"{valid} of {len(verdicts)}"
        broken = [r.property for r in of_family if r.verdict is Verdict.INVALID]
        names = f"; broken: {', '.join(broken)}" if broken else ""
        yield _headed(_worst(verdicts), f"{family:<15} {count} valid{names}")
        for result in of_family:
            if result.verdict is Verdict.UNKNOWN:
                yield Text(f"{INDENT}{result.property}: {_why_undecided(result)}")


def _worst(verdicts: list[Verdict]) -> Verdict:
    for verdict in (Verdict.INVALID, Verdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return Verdict.VALID


def _result_lines(result: Result) -> Iterator[Text]:
    """Yield the property, its first findings, the steps of the very first, and what was measured."""
    count = result.finding_count
    findings = f", {count} finding{'s' * (count > 1)}" if count else ""
    extent = ", judged in part" if result.in_part_without else ""
    checked = f"{result.checked} {noun_for(result.checked, result.unit)} checked{extent}{findings}"
    yield _headed(result.verdict, f"{result.property:<24} {checked}")
    shown = _distinct(result.findings)[:MAX_FINDINGS]
    for number, (finding, times) in enumerate(shown):
        yield from _finding_lines(finding, times, with_steps=number == 0)
    more = count - sum(times for _, times in shown)
    if result.verdict is Verdict.INVALID and more > 0:
        yield Text(f"{INDENT}{more} more: see the report")
    for line in measured(result):
        yield Text(f"{INDENT}{line}")
    if result.numbers and not result.distributions:
        quantities = (wording.quantity(name, value) for name, value in result.numbers.items())
        yield Text(INDENT + ", ".join(f"{label}: {value}" for label, value in quantities))


def _distinct(findings: Sequence[Finding]) -> list[tuple[Finding, int]]:
    """Return the first finding of each sentence, in order, and how often it occurs."""
    first: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        first.setdefault((finding.key, finding.sentence), finding)
    times = Counter((finding.key, finding.sentence) for finding in findings)
    return [(finding, times[sentence]) for sentence, finding in first.items()]


def _stated(finding: Finding) -> str:
    """Return the sentence behind its subject, unless it begins with that."""
    has_subject = finding.sentence.startswith(finding.key)
    return finding.sentence if has_subject else f"{finding.key}: {finding.sentence}"


def _finding_lines(finding: Finding, times: int, *, with_steps: bool) -> Iterator[Text]:
    again = f" ({times} times)" if times > 1 else ""
    yield Text(f"{INDENT}{_stated(finding)}{again}")
    for number, step in enumerate(finding.steps if with_steps else (), start=1):
        yield Text(f"{INDENT}  {number}. {step}")


def _headed(verdict: Verdict, rest: str) -> Text:
    return Text(f"{verdict.value:<8}", STYLES[verdict]).append(f" {rest}", "default")


def _reach(outcome: Outcome) -> str:
    """Return how many properties the verdict leaves out, knows in part or allows; empty if all were judged whole."""
    partial = sum(bool(result.in_part_without) for result in outcome.results)
    counts = (
        (len(outcome.not_observed), "not observed"),
        (partial, "judged in part"),
        (sum(map(wording.is_broken_as_known, outcome.results)), "broken by known behaviour"),
    )
    parts = [f"{count} {how}" for count, how in counts if count]
    return f" ({', '.join(parts)})" if parts else ""
