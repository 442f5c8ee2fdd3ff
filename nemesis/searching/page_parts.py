"""Parts of ``docs/scoreboard.md``: each is written by a command of its own, between two comments. The others stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a page, known by its name."""

    name: str

    def text(self, lines: Sequence[str]) -> str:
        """Return the part with this content, ready for a page."""
        return "\n".join((self._begin, *lines, self._end)) + "\n"

    def read(self, page: str) -> str | None:
        """Return the part as it stands in a page, with its comments; None if the page has none."""
        match = self._pattern.search(page)
        return None if match is None else match.group()

    def write(self, page: str, text: str) -> str:
        """Return the page with the part replaced, or added at the end."""
        if self.read(page) is not None:
            return self._pattern.sub(lambda _: text, page)
        return f"{page.rstrip()}\n\n{text}"

    @property
    def _begin(self) -> str:
        return f"<!-- {self.name}: begin -->"

    @property
    def _end(self) -> str:
        return f"<!-- {self.name}: end -->"

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self._begin)}.*?{re.escape(self._end)}\n?", re.DOTALL)


GENERATED: Final = PagePart("generated mutants")
GUIDED: Final = PagePart("guided against blind")


def keep_parts(old: str, new: str) -> str:
    """Return the new page with the parts that the old one has."""
    for part in (GENERATED, GUIDED):
        text = part.read(old)
        if text is not None:
            new = part.write(new, text)
    return new
