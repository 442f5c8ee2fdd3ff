"""Run all benchmarks, or those named on the command line; a number after a name is a size (``core 1_000_000``)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

PREFIX = "bench_"


def main(words: list[str]) -> int:
    """Run the named benchmarks, all if none is named; return the exit code."""
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
        print(
            f"no benchmark is called {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr
        )
        return 254
    for name, sizes in asked or [(name, []) for name in known]:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{PREFIX}{name}").main(*sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
