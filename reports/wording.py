"""How reports write things: what each property promises, and an event's values.

Promises come from the properties; the exact definitions stand at the head of each property's module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nemesis.checkers import property_named
from nemesis.checkers.framework.model import Outcome, Result, Verdict
from nemesis.history.run_directory import RunInfo
from nemesis.history.sources import EventSource

_SHOWN_ELSEWHERE = frozenset({"time", "process", "kind", "seq", "row"})
_MIN_RANGE = 5
"""Fewer consecutive numbers than this are written one by one."""
_MAX_RUNS = 12
_MAX_TEXT = 600


def promise(name: str) -> str:
    """Return what a property promises, in one sentence; for an unknown property, its name as words."""
    decided = property_named(name)
    return f"{name.replace('-', ' ').capitalize()}." if decided is None else decided.promise


def not_observed(outcome: Outcome) -> list[str]:
    """Return a sentence for each source, or set of them, without which properties were not judged."""
    named: dict[str, list[str]] = {}
    for item in outcome.not_observed:
        named.setdefault(labels(item.without), []).append(item.property)
    return [
        f"Not observed, because the run lacks {without}: {', '.join(names)}."
        for without, names in named.items()
    ]


def in_part(outcome: Outcome) -> list[str]:
    """Return a sentence for each source, or set of them, without which properties were judged in part."""
    named: dict[str, list[str]] = {}
    for result in outcome.results:
        if result.in_part_without:
            named.setdefault(labels(result.in_part_without), []).append(result.property)
    return [
        f"Judged in part, because the run lacks {without}; a violation is certain, its absence is not: "
        f"{', '.join(names)}."
        for without, names in named.items()
    ]


def known(outcome: Outcome) -> list[str]:
    """Return a sentence for each known behaviour that broke properties, whether it counts in the verdict or not."""
    named: dict[tuple[str, bool], list[str]] = {}
    for result in outcome.results:
        for reference in dict.fromkeys(
            finding.known for finding in result.findings if finding.known
        ):
            counts = result.verdict is Verdict.INVALID
            named.setdefault((reference, counts), []).append(result.property)
    return [
        f"Known behaviour ({reference}), {'counted in the verdict' if counts else 'not counted in the verdict'}: "
        f"{', '.join(names)}."
        for (reference, counts), names in named.items()
    ]


def is_broken_as_known(result: Result) -> bool:
    """Return whether the property is broken, and only by known behaviour that does not count."""
    is_valid = result.verdict is Verdict.VALID
    return is_valid and any(finding.known for finding in result.findings)


def labels(sources: Iterable[EventSource]) -> str:
    """Return what the sources are: ``traces of brokers and the metadata log``."""
    return " and ".join(source.label for source in sources)


def columns(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (column, value as text) of what an event says beside when, who and what kind."""
    return [(name, text(value)) for name, value in event.items() if name not in _SHOWN_ELSEWHERE]


def text(value: Any) -> str:
    """Return a value for reading. Long lists of numbers become ranges, long texts are cut and say so."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        numbers = bool(value) and all(isinstance(item, int) for item in value)
        return f"[{_ranges(list(value)) if numbers else ', '.join(map(str, value))}]"
    words = str(value)
    return words if len(words) <= _MAX_TEXT else f"{words[:_MAX_TEXT]}… ({len(words):,} characters)"


def event_line(event: Mapping[str, Any]) -> str:
    """Return an event as one line of plain text."""
    said = " ".join(f"{name}={value}" for name, value in columns(event))
    time = event.get("time", -1)
    when = f"{time / 1e9:.6f}s" if time >= 0 else "zookeeper"
    return f"{when} {event.get('process', '?')} {event.get('kind', '?')} {said}".rstrip()


def quantity(name: str, value: float) -> tuple[str, str]:
    """Split a measured number into what it is and its value with the unit that its name ends in."""
    label, _, unit = name.rpartition("_")
    if label and unit in {"ms", "s", "ns", "us", "bytes", "records"}:
        unit = "record" if unit == "records" and value == 1 else unit
        return label.replace("_", " "), f"{_rounded(value)} {unit}"
    return name.replace("_", " "), _rounded(value)


def _rounded(value: float) -> str:
    """A whole number as it is, another one with as many digits as a reader needs."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def phases(info: RunInfo) -> str:
    """Return what the run went through and how long each part took; the names alone where that is not told."""
    reported = [f"{name} {seconds:,.1f} s" for name, seconds in info.durations_s.items()]
    return ", ".join(reported or info.phases)


def measured(detail: str) -> str:
    """Return in words what was measured of a fault: ``held bytes 10; probes after: 0 of 3``.

    ``detail`` is the JSON object that the nemesis recorded; anything else is returned as it is.
    """
    try:
        report = json.loads(detail)
    except ValueError:
        return detail
    if not isinstance(report, dict):
        return detail
    return "; ".join(_measure(name, value, colon=": ") for name, value in report.items())


_SAID_AS: Final = {"held_bytes": "bytes stopped"}
"""A proxy holds them, a kernel drops them."""


def _measure(name: str, value: Any, *, colon: str) -> str:
    """One measured thing: a yes or no is named or denied, several are counted."""
    name = _SAID_AS.get(name, name).replace("_", " ")
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, dict):
        is_poll = all(isinstance(item, bool) for item in value.values())
        if is_poll and (len(value) > 1 or name.startswith("probes")):
            return f"{name}{colon}{sum(value.values())} of {len(value)}"
        inner = (_measure(key, value, colon=" ") for key, value in value.items())
        return f"{name}{colon}{', '.join(inner) or 'none'}"
    if isinstance(value, list):
        return f"{name}{colon}{', '.join(map(str, value)) or 'none'}"
    return f"{name} {text(value)}"


def _ranges(numbers: list[int]) -> str:
    """``1, 2, 3, 4, 5, 9`` as ``1–5, 9``; the order is kept, the middle of very long lists is left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words: list[str] = []
    for first, last in runs:
        if last - first < _MIN_RANGE - 1:
            words += [str(number) for number in range(first, last + 1)]
        else:
            words.append(f"{first}–{last}")
    if len(words) > _MAX_RUNS:
        left_out = len(words) - _MAX_RUNS
        words = [*words[: _MAX_RUNS - 2], f"… {left_out:,} more …", *words[-2:]]
    return ", ".join(words)
