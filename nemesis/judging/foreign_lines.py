"""Findings of an external history name the lines and the indexes of its file.

``located`` adds them to the events of a finding, and a last step that lists them. A history without times was given
some, for its order: here they become lines, and durations are left out, because nothing states them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from nemesis.checkers.framework.model import Finding, Outcome
from nemesis.history.foreign.operation_order import line_at
from nemesis.history.foreign.origins import Origin, read_origins

MAX_LISTED: Final = 12
"""Lines that the last step of a finding names."""
_TIME: Final = re.compile(r"\b(\d{1,3}(?:,\d{3}){2,}) ns\b")
"""A time that stands for a line: ``LINE_NS`` or more, written with commas."""
_APART: Final = re.compile(r"^[\d,.]+ (?:ns|ms|s) (?:later|earlier), (.)")
_SAME: Final = re.compile(r"^at the same moment, (.)", re.IGNORECASE)


def located(outcome: Outcome, run: Path, *, is_timed: bool) -> Outcome:
    """Return the outcome with lines in its findings; raises DamagedHistoryError.

    ``is_timed``: whether the file states times.
    """
    findings = [finding for result in outcome.results for finding in result.findings]
    numbers = {event["seq"] for finding in findings for event in finding.events if "seq" in event}
    origins = read_origins(run, sorted(numbers)) if numbers else {}
    results = tuple(
        msgspec.structs.replace(
            result,
            findings=tuple(
                _located(finding, origins, is_timed=is_timed) for finding in result.findings
            ),
        )
        for result in outcome.results
    )
    return msgspec.structs.replace(outcome, results=results)


def _located(finding: Finding, origins: Mapping[int, Origin], *, is_timed: bool) -> Finding:
    events = tuple(_event(event, origins, is_timed=is_timed) for event in finding.events)
    steps = list(finding.steps if is_timed else map(_by_line, finding.steps))
    if lines := _lines(events):
        steps.append(lines)
    return msgspec.structs.replace(
        finding,
        sentence=finding.sentence if is_timed else _by_line(finding.sentence),
        steps=tuple(steps),
        events=events,
    )


def _event(
    event: Mapping[str, Any], origins: Mapping[int, Origin], *, is_timed: bool
) -> dict[str, Any]:
    columns = {name: value for name, value in event.items() if is_timed or name != "time"}
    origin = origins.get(event.get("seq", -1))
    if origin is not None:
        columns["line"] = origin.line
        if origin.index is not None:
            columns["index"] = origin.index
    return columns


def _lines(events: tuple[dict[str, Any], ...]) -> str:
    """Return the sentence that names the lines of events, each once; nothing if no line is known."""
    named = dict.fromkeys(
        (event["line"], event.get("index")) for event in events if "line" in event
    )
    if not named:
        return ""
    words = [f"{line}" if index is None else f"{line} (index {index})" for line, index in named]
    listed = ", ".join(words[:MAX_LISTED]) + (" …" if len(words) > MAX_LISTED else "")
    return f"In the file: line{'s' * (len(words) > 1)} {listed}."


def _by_line(text: str) -> str:
    """Return a text with lines instead of the times that stand for them."""
    for pattern in (_APART, _SAME):
        text = pattern.sub(lambda match: match[1].upper(), text)
    return _TIME.sub(lambda match: f"line {line_at(int(match[1].replace(',', '')))}", text)
