"""Run all benchmarks, or those named on the command line; a number after a name is a size (``core 1_000_000``).

``--save FILE`` adds what was measured to a file, as JSON lines; ``plot FILE`` prints time against size from it, as
mermaid's blocks, ``summary FILE`` the table of what is required, and ``page FILE`` writes both into
``docs/performance.md``.

When several have run, all that is required of them comes in one table at the end. A benchmark that cannot run on this
machine (no Docker, not root) is named there, and the others run.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from benchmarks.figures import Figure, plots, read, save, summary, with_results

PREFIX: Final = "bench_"
SAVE: Final = "--save"
PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 254


class BadUsage(Exception):
    """The command line asks for what cannot be; the message says what."""


def main(words: list[str]) -> int:
    """Run the named benchmarks, all if none is named; return the exit code."""
    try:
        if len(words) == 2 and words[0] in VIEWS:
            VIEWS[words[0]](_read(Path(words[1])))
            return 0
        file, words = _saved_to(words)
        asked = _asked(words)
    except BadUsage as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    figures: list[Figure] = []
    failed: list[str] = []
    for name, sizes in asked:
        print(f"\n== {name}", flush=True)
        try:
            measured = importlib.import_module(f"benchmarks.{PREFIX}{name}").main(*sizes) or []
        except Exception:  # noqa: BLE001 - whatever it is, the other benchmarks can run
            traceback.print_exc()
            failed.append(name)
            continue
        figures += measured
        if file is not None:
            save(file, measured)
    if len(asked) > 1:
        _summarise(figures)
    if failed:
        print(f"could not run: {', '.join(failed)}")
    return EXIT_FAILED if failed else 0


def _saved_to(words: list[str]) -> tuple[Path | None, list[str]]:
    """Return the file that was named, and the other words."""
    if SAVE not in words:
        return None, words
    position = words.index(SAVE)
    if position + 1 == len(words):
        raise BadUsage(f"{SAVE} needs a file")
    return Path(words[position + 1]), words[:position] + words[position + 2 :]


def _asked(words: list[str]) -> list[tuple[str, list[int]]]:
    """Return the names and the sizes after each."""
    known = sorted(
        path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py")
    )
    asked: list[tuple[str, list[int]]] = []
    for word in words:
        if asked and word.replace("_", "").isdecimal():
            asked[-1][1].append(int(word))
        else:
            asked.append((word, []))
    unknown = [name for name, _ in asked if name not in known]
    if unknown:
        raise BadUsage(
            f"no benchmark is called {unknown[0]!r}; there are: {', '.join(known)}, "
            f"and of a file {' and '.join(VIEWS)}"
        )
    return asked or [(name, []) for name in known]


def _read(file: Path) -> list[Figure]:
    try:
        return read(file)
    except (OSError, msgspec.MsgspecError) as error:
        raise BadUsage(f"{file} holds no figures: {error}") from None


def _summarise(figures: list[Figure]) -> None:
    table = summary(figures)
    if table.row_count:
        Console(width=140).print(table)


def _plot(figures: list[Figure]) -> None:
    print(plots(figures))


def _write_page(figures: list[Figure]) -> None:
    PAGE.write_text(with_results(PAGE.read_text("utf-8"), figures), "utf-8")


VIEWS: Final[dict[str, Callable[[list[Figure]], Any]]] = {
    "summary": _summarise,
    "plot": _plot,
    "page": _write_page,
}
"""What is made of a file of figures."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
