"""The program ``nemesis``, also as ``python -m nemesis``.

The rest is imported inside of ``main``: that takes a second, in which Ctrl-C is to be a sentence as at any other time.
"""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 255
"""``nemesis.support.errors.EXIT_CRASH``, which cannot be imported yet."""


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from nemesis.cli.app import call

        code = call(sys.argv[1:])
    except KeyboardInterrupt:
        # Not through ``say_error``: it may have been its import that was interrupted.
        sys.stderr.write("nemesis: interrupted\n")
        code = EXIT_INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
