"""The command line: which commands there are, and what becomes of their errors.

Exit codes: 0 valid, 1 invalid, 2 unknown; 254 the request is invalid (one sentence on
stderr, nothing written); 255 the harness failed or was interrupted, so there is no verdict. The
last line of every run is the verdict, the report's path and the replay command.
"""

from __future__ import annotations

import importlib
import shlex
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from typing import Final

import typer

from nemesis.cli.console import say_error
from nemesis.history.errors import HistoryError, SparkError
from nemesis.support.errors import EXIT_CRASH, EXIT_USAGE, NemesisError
from nemesis.support.interrupts import Interrupted

EXIT_OF_TYPER_AFTER_CTRL_C = 130
"""Typer turns KeyboardInterrupt into this code, without a word; no command of ours has it."""
INTERRUPTED = "interrupted"

COMMANDS: Final[Mapping[str, str]] = {
    "run": "run",
    "check": "check",
    "report": "report",
    "export": "export",
    "replay": "replay",
    "explore": "explore",
    "mutants": "mutants",
    "shrink": "shrink_run",
    "list": "list_everything",
    "doctor": "examine",
    "clean": "clean_up",
}
"""The modules of ``nemesis.cli.commands``, and the function in each."""


def command_line(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands: the one that is asked for, or all, as for help.

    A command costs up to seconds of imports, which are no other's.
    """
    app = typer.Typer(
        name="nemesis",
        help="Break a Kafka-style cluster on purpose, and prove from the record whether it kept its promises.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(lambda: None)
    asked = arguments[0] if arguments and arguments[0] in COMMANDS else None
    for name in [asked] if asked else COMMANDS:
        module = importlib.import_module(f"nemesis.cli.commands.{name}")
        app.command(name)(getattr(module, COMMANDS[name]))
    return app


def call(arguments: list[str]) -> int:
    """Run one command; return its exit code. Never raises, never shows a stack trace."""
    try:
        code = typer.main.get_command(command_line(arguments)).main(
            args=arguments or ["--help"], prog_name="nemesis", standalone_mode=False
        )
    except (Interrupted, KeyboardInterrupt, typer.Abort) as error:
        say_error(str(error) or INTERRUPTED)
        return EXIT_CRASH
    except Exception as error:  # noqa: BLE001 - the edge of the program: whatever it is becomes one sentence
        if (format_message := getattr(error, "format_message", None)) is not None:
            say_error(f"{format_message().rstrip('.')}: `nemesis --help` says what is allowed")
            return EXIT_USAGE
        if (known := _exit_code(error)) is not None:
            say_error(str(error))
            return known
        say_error(f"nemesis itself failed ({_brief(error)}): the stack trace is in {_keep_trace()}")
        return EXIT_CRASH
    if code == EXIT_OF_TYPER_AFTER_CTRL_C:
        say_error(INTERRUPTED)
        return EXIT_CRASH
    return code if isinstance(code, int) else 0


def _exit_code(error: Exception) -> int | None:
    """Return the code of an error whose message is a sentence for the user; ``None`` for any other."""
    if isinstance(error, NemesisError):
        return error.exit_code
    if isinstance(error, HistoryError | SparkError):
        return EXIT_USAGE
    # Imported when something has failed: it takes a second, and most commands do without.
    from nemesis.interfaces.runtime import FaultUnsupported, RuntimeFailure

    if isinstance(error, RuntimeFailure):
        return EXIT_CRASH
    return EXIT_USAGE if isinstance(error, FaultUnsupported) else None


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _keep_trace() -> str:
    """Write the present stack trace to a file of its own and return where it is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="nemesis-crash-", suffix=".log", delete=False, encoding="utf-8"
        ) as log:
            log.write(f"command: {shlex.join(sys.argv)}\n\n{traceback.format_exc()}")
            return log.name
    except OSError as error:
        return f"no file ({error.strerror})"
