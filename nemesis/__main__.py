"""The program ``nemesis``, also as ``python -m nemesis``.

The rest is imported inside of ``main``: that takes a second, in which Ctrl-C is to be a sentence as at any other time.
Python's own exit code for an error that nothing catches is 1, which means a violation here: it becomes 255.
"""

from __future__ import annotations

import gc
import sys
import traceback

EXIT_CRASH = 255
"""``nemesis.support.errors.EXIT_CRASH``, which cannot be imported yet."""
ALLOCATIONS_BEFORE_COLLECTION = 100_000
"""New objects before Python looks for garbage. Its default, 700, takes a seventh of a short command: nearly all
objects of imports stay."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(ALLOCATIONS_BEFORE_COLLECTION)
    try:
        from nemesis.cli import streams
        from nemesis.cli.app import call, close

        streams.protect()
        code = close(call(sys.argv[1:]))
    except KeyboardInterrupt:
        # Not through ``say_error``: it may have been its import that was interrupted.
        sys.stderr.write("nemesis: interrupted\n")
        code = EXIT_CRASH
    except Exception:  # noqa: BLE001 - an incomplete installation; the rest is caught where it happens
        traceback.print_exc()
        code = EXIT_CRASH
    # At its exit Python would look for garbage among all that was imported. Files are closed where they are written.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
