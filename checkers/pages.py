"""The pages that are generated from the properties: ``docs/properties.md`` and ``docs/findings.md``.

``python -m nemesis.checkers.pages`` writes them; a test compares them with what the properties give. Read the
difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nemesis.checkers import CHECKERS, FOREIGN
from nemesis.checkers.checking import check
from nemesis.checkers.cycles.check import Transactional
from nemesis.checkers.cycles.log_transactions import LogTransactions
from nemesis.checkers.cycles.models import MODELS
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Check, Property
from nemesis.history.memory import history_of
from nemesis.history.sources import EventSource

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
_FINDINGS_HEAD: Final = """\
# What findings say

The smallest histories that break each property, each in another way, and what is found in them: the sentence, then
the proof step by step. `invalid`: it is proved. `unknown`: it cannot be decided. `valid`: it is reported and allowed.
What each property promises is in [properties.md](properties.md). `python -m nemesis.checkers.pages` writes this page
from the properties (`Property.breaks`), and a test compares both.
"""
_PROPERTIES_HEAD: Final = """\
# Properties

What nemesis checks. A property without anything to check is `unknown`. If the target lacks a
[source](history.md#sources) that decides a property, the property is not observed and does not count in the verdict.
If the target lacks a source named behind `in part without`, a violation is certain and its absence is not. The exact
definition of a property is at the head of the module that decides it; what its findings say is in
[findings.md](findings.md), what a verdict does not say in [limits.md](limits.md).
`python -m nemesis.checkers.pages` writes this page from the properties, and a test compares both.
"""
_FOREIGN_HEAD: Final = """\
## Histories of other systems

`nemesis check FILE --workload NAME` decides the properties of that workload:
[how](external-histories.md).
"""
_FOREIGN_FINDINGS_HEAD: Final = """\
## Histories of other systems

What is found in the smallest histories that break the properties of each workload. Transactions are held against
strict serializability, which allows least.
"""


def broken(decided: Property) -> Iterator[Finding]:
    """Yield what the property's check finds in each of its smallest breaking histories."""
    for events in decided.breaks:
        outcome = check(history_of(events), [_strictest(decided.check)], observed=[*EventSource])
        result = next(result for result in outcome.results if result.property == decided.name)
        if not result.findings:
            raise ValueError(f"{decided.name}: expected a finding in {events}, got none")
        yield result.findings[0]


def findings_page() -> str:
    """Return the page of all findings of the smallest breaking histories."""
    lines = [_FINDINGS_HEAD.rstrip()]
    for decided in CHECKERS.values():
        lines += (
            ["", f"## {decided.name}", *_finding_lines(decided, _sentence)]
            if decided.breaks
            else []
        )
    lines += ["", _FOREIGN_FINDINGS_HEAD.rstrip()]
    for workload in FOREIGN:
        for decided in broken_in(workload):
            lines += [
                "",
                f"### {workload}: {decided.name}",
                *_finding_lines(decided, _bare_sentence),
            ]
    return "\n".join(lines) + "\n"


def broken_in(workload: str) -> Iterator[Property]:
    """Yield the properties of a workload that have smallest breaking histories of its operations."""
    checks = FOREIGN[workload]
    everything = (decided for check_ in checks for decided in check_.properties())
    return (decided for decided in everything if decided.breaks and decided.check in checks)


def properties_page() -> str:
    """Return the page of all properties."""
    lines = [_PROPERTIES_HEAD.rstrip()]
    for decided in CHECKERS.values():
        lines += ["", f"## {decided.name}", "", decided.promise, "", *_facts(decided)]
        if decided.breaks:
            sentence = _sentence(next(broken(decided)))
            lines.append(f"* smallest break: {sentence} ([all](findings.md#{decided.name}))")
    lines += ["", _FOREIGN_HEAD.rstrip()]
    for workload, checks in FOREIGN.items():
        lines += ["", f"### {workload}", "", "| property | promise | checked | `unknown` |"]
        lines.append("|---|---|---|---|")
        for decided in (declared for check_ in checks for declared in check_.properties()):
            lines.append(
                f"| {decided.name} | {decided.promise} | {decided.unit} | {decided.unknown} |"
            )
        lines += ["", *(f"* {_decided_by(check_)}" for check_ in checks)]
        for decided in broken_in(workload):
            sentence = _bare_sentence(next(broken(decided)))
            anchor = f"{workload}-{decided.name.lower()}"
            lines.append(
                f"* smallest break of {decided.name}: {sentence} ([all](findings.md#{anchor}))"
            )
        sources = dict.fromkeys(
            declared.source for check_ in checks for declared in check_.properties()
        )
        lines += [f"* source: {source}" for source in sources]
    return "\n".join(lines) + "\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"properties.md": properties_page, "findings.md": findings_page}
)
"""Each generated page of ``docs/`` by its file name."""


def _finding_lines(decided: Property, name: Callable[[Finding], str]) -> Iterator[str]:
    """Yield the lines about what breaks a property."""
    for finding in broken(decided):
        yield from ("", f"**{finding.verdict.value}**: {name(finding)}", "")
        yield from (f"{number}. {step}" for number, step in enumerate(finding.steps, start=1))


def _strictest(check_: type[Check]) -> Check:
    """Return the check, of transactions under the model that allows least."""
    if issubclass(check_, Transactional | LogTransactions):
        return check_(MODELS["strict-serializable"])
    return check_()


def _facts(decided: Property) -> list[str]:
    kinds = ", ".join(f"`{kind}`" for kind in sorted(decided.needs))
    return [
        f"* checked: {decided.unit}",
        f"* `unknown`: {decided.unknown}",
        f"* decided {decided.extent}",
        f"* needs events of these kinds: {kinds}",
        f"* source: {decided.source}",
        f"* {_decided_by(decided.check)}",
    ]


def _decided_by(check_: type) -> str:
    path = check_.__module__.removeprefix("nemesis.").replace(".", "/")
    return f"decided by: `{check_.__name__}` in `{path}.py`"


def _sentence(finding: Finding) -> str:
    """Return the finding's sentence, behind the key where the sentence does not begin with it."""
    is_named = finding.sentence.startswith(f"{finding.key}: ")
    return finding.sentence if is_named else f"{finding.key}: {finding.sentence}"


def _bare_sentence(finding: Finding) -> str:
    """Return the finding's sentence alone: those about other systems' objects name the object."""
    return finding.sentence


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
