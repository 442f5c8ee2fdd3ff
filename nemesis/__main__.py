"""``python -m nemesis``: the same as the command ``nemesis``."""

from nemesis.cli import main

main()
