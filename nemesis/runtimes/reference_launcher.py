"""Start a broker of the reference under the harness's hand: ``python -m nemesis.runtimes.reference_launcher CONFIG
...``.

``--mutant NAME`` or ``--mutant FILE.py`` plants a bug, in this process only, and before the broker's modules take
each other's names.
``--disk-commands DIRECTORY`` gives it a disk that fails on command (``nemesis.runtimes.disk_control``). ``reference/``
itself is always the correct code.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Prepare the process and run the broker until it is told to stop; raises what either raises."""
    parser = argparse.ArgumentParser(prog="nemesis.runtimes.reference_launcher")
    parser.add_argument("config", help="the broker's properties as JSON")
    parser.add_argument("--mutant", help="the planted bug")
    parser.add_argument("--disk-commands", type=Path, help="the directory of its disk's commands")
    options = parser.parse_args(arguments)
    if options.mutant is not None:
        from nemesis.mutants.chosen import choose_mutant

        choose_mutant(options.mutant).load().plant()
    from nemesis.reference.__main__ import main as run_broker
    from nemesis.reference.adapters.disk import RealDisk
    from nemesis.reference.ports import Disk
    from nemesis.runtimes.disk_control.faulty_disk import FaultyDisk

    def open_disk() -> Disk:
        return RealDisk() if options.disk_commands is None else FaultyDisk(options.disk_commands)

    run_broker([options.config], open_disk=open_disk)


if __name__ == "__main__":
    main(sys.argv[1:])
