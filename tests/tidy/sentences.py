"""Sentences and table cells of the documentation that are too long to be read at once.

``python -m tests.tidy.sentences`` writes ``sentence_ratchet.yaml`` again, after sentences have been shortened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tidy.sources import ROOT, relative

MAX_WORDS: Final = 25
MAX_CELL_WORDS: Final = 20
EXEMPT: Final = frozenset(
    {
        "CHANGELOG.md",  # entries of earlier versions stay as they are
        *("docs/coverage-of-fields.md", "docs/findings.md", "docs/mutation-score.md"),
        *("docs/properties.md", "docs/scoreboard.md", "docs/survivors.md"),
    }
)
"""Beside the changelog: pages that are generated; their sentences stand in the code."""
RATCHET: Final = Path(__file__).parent / "sentence_ratchet.yaml"
HEADER: Final = """\
# How many sentences of more than 25 words, and table cells of more than 20, each page still has. A number may only
# fall; a page without an entry has none. Write it again with: python -m tests.tidy.sentences
"""
_FENCE: Final = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
_PARAGRAPHS: Final = re.compile(r"\n\s*\n|\n\s*[*-] |\n\s*\d+\. ")
_MARKER: Final = re.compile(r"^(?:[*-]|\d+\.) ")
_END: Final = re.compile(r"(?<=[.?!])\s+")
_NOT_PROSE: Final = ("    ", "|", "#", "<")
_CELLS: Final = re.compile(r"(?<!\\)\|")


def pages() -> list[Path]:
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    return sorted(path for path in paths if relative(path) not in EXEMPT)


def long_sentences(text: str) -> list[str]:
    return [sentence for sentence in _sentences(text) if len(sentence.split()) > MAX_WORDS]


def long_cells(text: str) -> list[str]:
    return [cell for cell in _cells(text) if len(cell.split()) > MAX_CELL_WORDS]


def _sentences(text: str) -> Iterator[str]:
    lines = _FENCE.sub("", text).split("\n")
    prose = "\n".join("" if line.startswith(_NOT_PROSE) else line for line in lines)
    for paragraph in _PARAGRAPHS.split(prose):
        yield from _END.split(_MARKER.sub("", " ".join(paragraph.split())))


def _cells(text: str) -> Iterator[str]:
    for line in _FENCE.sub("", text).split("\n"):
        if line.startswith("|"):
            yield from (cell.strip() for cell in _CELLS.split(line))


def counts() -> dict[str, tuple[int, int]]:
    """For each page that has any, the number of its long sentences and of its long cells."""
    by_page = {
        relative(path): (len(long_sentences(text)), len(long_cells(text)))
        for path in pages()
        for text in [path.read_text("utf-8")]
    }
    return {name: both for name, both in by_page.items() if any(both)}


def write_ratchet() -> None:
    lines = [f"{name}: [{sentences}, {cells}]\n" for name, (sentences, cells) in counts().items()]
    RATCHET.write_text(HEADER + "".join(lines), "utf-8")


if __name__ == "__main__":
    write_ratchet()
