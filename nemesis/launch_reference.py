"""Start a broker of the reference with one planted bug: ``python -m nemesis.launch_reference CONFIG --mutant NAME``.

The bug is planted in this process only, and before the broker's modules take each other's names: ``reference/``
itself is always the correct code.
"""

from __future__ import annotations

import argparse
import sys

from nemesis import mutants


def main(arguments: list[str]) -> None:
    """Plant the bug and run the broker until it is told to stop; raises what either raises."""
    parser = argparse.ArgumentParser(prog="nemesis.launch_reference")
    parser.add_argument("config", help="the broker's properties as JSON")
    parser.add_argument("--mutant", help="the planted bug")
    options = parser.parse_args(arguments)
    if options.mutant is not None:
        mutants.apply(options.mutant)
    from reference.__main__ import main as run_broker

    run_broker([options.config])


if __name__ == "__main__":
    main(sys.argv[1:])
