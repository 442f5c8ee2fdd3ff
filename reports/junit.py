"""JUnit XML: one test case per property, so that a build server shows a run as it shows tests.

``invalid`` is a failure. ``unknown`` is an error, never a skip: build servers pass a build with skipped
tests, but who saw nothing has proved nothing. A property that the target does not show is skipped, with the missing
source as the reason: it does not count in the verdict either. Problems of the history itself are one more test case,
``history``, present only if there are any, or if no property was judged.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable

from nemesis.checkers.framework.model import NotObserved, Outcome, Result, Verdict
from nemesis.checkers.framework.nouns import noun_for
from nemesis.history.run_directory import RunInfo
from nemesis.reports.wording import event_line, is_broken_as_known, labels, promise

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, however it is escaped."""

_TAGS = {Verdict.INVALID: "failure", Verdict.UNKNOWN: "error"}


def render(info: RunInfo, outcome: Outcome) -> bytes:
    """Return the document, UTF-8 with its declaration."""
    cases = [_case(info, result) for result in outcome.results]
    cases += [_skipped(info, item) for item in outcome.not_observed]
    if problems := outcome.problems or _nothing_judged(outcome):
        case = ET.Element("testcase", classname=_class(info), name="history")
        _judge(case, Verdict.UNKNOWN, problems[0], problems)
        cases.append(case)
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(len(outcome.not_observed)),
        "time": f"{outcome.seconds:.3f}",
    }
    suites = ET.Element("testsuites", {"name": "nemesis", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": _xml(info.scenario), **counts})
    if info.started_at:
        suite.set("timestamp", _xml(info.started_at))
    properties = ET.SubElement(suite, "properties")
    for name, value in _about(info, outcome):
        ET.SubElement(properties, "property", name=name, value=_xml(value))
    suite.extend(cases)
    ET.indent(suites)
    document: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(info: RunInfo, result: Result) -> ET.Element:
    case = ET.Element("testcase", classname=_class(info), name=_xml(result.property), time="0")
    findings = [finding for finding in result.findings if finding.verdict is result.verdict]
    if result.verdict is not Verdict.VALID:
        message = findings[0].sentence if findings else "Nothing was observed."
        lines = [promise(result.property), ""]
        for finding in findings:
            lines += [f"{finding.key}: {finding.sentence}"]
            lines += [f"  {number}. {step}" for number, step in enumerate(finding.steps, start=1)]
            lines += [f"  during {fault}" for fault in finding.faults]
            lines += [f"  {event_line(event)}" for event in (*finding.events, *finding.causes)]
        if result.finding_count > len(result.findings):
            lines.append(f"{result.finding_count:,} findings in all")
        if info.replay:
            lines.append(f"replay: {info.replay}")
        _judge(case, result.verdict, message, lines)
    output = ET.SubElement(case, "system-out")
    unit = noun_for(result.checked, result.unit)
    output.text = _xml(f"{result.checked:,} {unit} checked{_extent(result)}{_known(result)}")
    return case


def _extent(result: Result) -> str:
    """What was not judged of the promise; nothing if all of it was."""
    if not result.in_part_without:
        return ""
    missing = labels(result.in_part_without)
    return f"; judged in part: without {missing} a violation is certain, its absence is not"


def _known(result: Result) -> str:
    """Which known behaviour broke the property; nothing if none did."""
    named = [finding for finding in result.findings if finding.known]
    if not named:
        return ""
    references = ", ".join(dict.fromkeys(finding.known for finding in named))
    how = "not counted in the verdict" if is_broken_as_known(result) else "counted in the verdict"
    return f"; broken by known behaviour ({references}), {how}: {named[0].key}: {named[0].sentence}"


def _nothing_judged(outcome: Outcome) -> tuple[str, ...]:
    """The problem of a history in which every property was skipped."""
    return () if outcome.results else ("No property was judged.",)


def _skipped(info: RunInfo, item: NotObserved) -> ET.Element:
    case = ET.Element("testcase", classname=_class(info), name=_xml(item.property), time="0")
    reason = f"Not observed: the run lacks {labels(item.without)}."
    ET.SubElement(case, "skipped", message=_xml(reason))
    return case


def _judge(case: ET.Element, verdict: Verdict, message: str, lines: Iterable[str]) -> None:
    answer = ET.SubElement(case, _TAGS[verdict], message=_xml(message), type=verdict.value)
    answer.text = _xml("\n".join(lines))


def _about(info: RunInfo, outcome: Outcome) -> list[tuple[str, str]]:
    run = {
        "seed": str(info.seed),
        "target": info.target,
        "runtime": info.runtime,
        "mutant": info.mutant or "",
        "mutant file": info.mutant_file.get("path", ""),
    }
    source = {name: info.foreign[name] for name in ("workload", "file", "sha256") if info.foreign}
    about = {
        **(source or run),
        "verdict": outcome.verdict.value,
        "events": str(outcome.events),
        "replay": info.replay,
    }
    return [(name, value) for name, value in about.items() if value]


def _class(info: RunInfo) -> str:
    return _xml(f"nemesis.{info.scenario}")


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)
