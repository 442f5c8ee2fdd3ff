"""Run all benchmarks, or those named on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

PREFIX = "bench_"


def main(names: list[str]) -> int:
    """Run the named benchmarks, all if none is named; return the exit code."""
    known = sorted(
        path.stem.removeprefix(PREFIX) for path in Path(__file__).parent.glob(f"{PREFIX}*.py")
    )
    unknown = [name for name in names if name not in known]
    if unknown:
        print(
            f"no benchmark is called {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr
        )
        return 254
    for name in names or known:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{PREFIX}{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
