"""Reads ``docs/survivors.md``: why a mutant that survived is equivalent, or changes performance only.

An entry is a heading of the third level and at least one sentence below it::

    ### `log/log:Log.read:95:boundary:0#0a1b2c3d` is equivalent

    Offsets below the log's start are refused by the caller, so the boundary is never met.

The heading ends with ``is equivalent`` or ``is performance only``. An entry whose mutant does not exist any more,
because its function has changed, is refused: its argument was about other code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nemesis.mutants.generated.draw import all_mutations
from nemesis.mutants.generated.mutation import Mutation
from nemesis.mutants.generated.sources import module_names
from nemesis.support.errors import UsageError

KINDS: Final = ("equivalent", "performance only")
_HEADING: Final = re.compile(r"### `(?P<name>[^`]+)` is (?P<kind>.+)")
_NAME: Final = re.compile(
    r"(?P<module>[\w/]+):(?P<function>[\w.]+):\d+:(?P<operator>[a-z-]+):(?P<index>\d+)#(?P<digest>[0-9a-f]{8})"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One argument."""

    name: str
    kind: str
    argument: str
    line: int
    """Of the heading."""

    @property
    def key(self) -> tuple[str, str, str, int, str] | None:
        """The mutant's identity without its line; None for a name that is not one."""
        match = _NAME.fullmatch(self.name)
        if match is None:
            return None
        module, function, operator, index, digest = match.groups()
        return module, function, operator, int(index), digest


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a page; raises ``UsageError`` for one that is not complete."""
    lines = text.splitlines()
    is_example = False
    for index, line in enumerate(lines):
        is_example ^= line.startswith("```")
        if is_example or not line.startswith("### `"):
            continue
        number = index + 1
        match = _HEADING.fullmatch(line.strip())
        if match is None or match["kind"] not in KINDS:
            raise UsageError(
                f"survivors.md line {number}: expected '### `mutant` is equivalent' or '... is performance only', "
                f"got {line.strip()!r}"
            )
        body: list[str] = []
        for following in lines[number:]:
            if following.startswith("#"):
                break
            body.append(following.strip())
        argument = " ".join(filter(None, body))
        if not argument:
            raise UsageError(
                f"survivors.md line {number}: expected an argument below the heading, got none"
            )
        yield Entry(match["name"], match["kind"], argument, number)


def equivalent_mutants(page: Path) -> set[str]:
    """Return the present names of the mutants with an argument, from any module of the reference.

    Raises ``UsageError`` for stale or unknown entries.
    """
    if not page.exists():
        return set()
    argued = list(entries(page.read_text(encoding="utf-8")))
    known = {mutation.key: mutation for mutation in _mutations(argued)}
    moved = {key[:4] for key in known}
    names = set()
    for entry in argued:
        key = entry.key
        if key is None or key not in known:
            reason = (
                "the function has changed since"
                if key and key[:4] in moved
                else "such a mutant does not exist"
            )
            raise UsageError(
                f"survivors.md line {entry.line}: expected a mutant of the present code, got {entry.name}: {reason}; "
                "remove the entry or argue again"
            )
        names.add(known[key].name)
    return names


def _mutations(argued: Iterable[Entry]) -> list[Mutation]:
    modules = {entry.key[0] for entry in argued if entry.key is not None}
    present = modules & set(module_names(("*",)))
    return all_mutations(sorted(present))
