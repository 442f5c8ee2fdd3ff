"""The command line: which commands there are, and what becomes of their errors.

Exit codes: 0 valid, 1 invalid, 2 unknown; 254 the request is invalid (one sentence on
stderr, nothing written); 255 the harness failed or was interrupted, so there is no verdict. The
last line of every run is the verdict, the report's path and the replay command.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from nemesis.cli import streams
from nemesis.cli.console import say_error
from nemesis.history.errors import HistoryError, SparkError
from nemesis.support.errors import (
    EXIT_CRASH,
    EXIT_USAGE,
    HarnessError,
    NemesisError,
    UsageError,
)
from nemesis.support.extras import DISTRIBUTION, sentence_about
from nemesis.support.interrupts import Interrupted, deaf

PROGRAM: Final = "nemesis"
COMPLETION: Final = "_NEMESIS_COMPLETE"
"""The variable with which a shell asks for completions."""
INTERRUPTED: Final = "interrupted"
FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the kernel answers where this user may not read or write."""
UNUSABLE: Final = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
"""What the kernel answers to a path that cannot be one."""
MAX_NAME: Final = 80
"""Characters of a path that is too long."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What the kernel answers when a disk, or what this user may have of it, is full."""

WORDS: Final = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""The variables in which a shell says what is written so far, when it asks for completions."""


class Command(NamedTuple):
    """A module of ``nemesis.cli.commands``."""

    function: str
    help: str
    """One line of the list of commands. It is said here, because the module costs up to seconds of imports."""


COMMANDS: Final[Mapping[str, Command]] = {
    "run": Command("run", "Run a scenario: break the cluster, record all, judge it."),
    "check": Command("check", "Judge a run again, or an external history."),
    "report": Command("report", "Write the report of a run again."),
    "export": Command("export", "Write the operations of a run as EDN, for Jepsen's checkers."),
    "replay": Command("replay", "Repeat a run: exactly if simulated, else its plan."),
    "explore": Command("explore", "Run many seeds in simulation, and say what broke."),
    "mutants": Command("mutants", "Search planted bugs, or generated ones: the scoreboard."),
    "shrink": Command("shrink_run", "Shrink a simulated run that broke a property."),
    "fetch": Command("fetch_target", "Download a release of Apache Kafka with Maven."),
    "list": Command("list_everything", "List scenarios, targets, faults, checkers and more."),
    "scenario": Command("scenario", "Print a scenario with all its defaults."),
    "doctor": Command("examine", "Say what this machine lacks, and how to get it."),
    "clean": Command("clean_up", "End and remove what dead runs have left."),
}
"""The commands in the order of the help."""


def command_line(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands. The one that is asked for is imported; the others are names with a line of help."""
    app = typer.Typer(
        name=PROGRAM,
        help="Break a Kafka-style cluster on purpose, record what happens, and search the record for broken promises.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options_of_the_program)
    # No option of the program has a value, so that the first name of a command is the command.
    asked = next((argument for argument in arguments if argument in COMMANDS), None)
    for name, command in COMMANDS.items():
        app.command(name, short_help=command.help)(_function(name) if name == asked else _unasked)
    return app


def _function(name: str) -> Callable[..., None]:
    module = importlib.import_module(f"nemesis.cli.commands.{name}")
    function: Callable[..., None] = getattr(module, COMMANDS[name].function)
    return function


def _unasked() -> None:
    raise AssertionError("a command that was not asked for is not run")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"{PROGRAM} {version(DISTRIBUTION)}")  # noqa: T201 - the answer
        raise typer.Exit


def _options_of_the_program(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Break a Kafka-style cluster on purpose, record what happens, and search the record for broken promises."""


def call(arguments: list[str]) -> int:
    """Run one command; return its exit code. Never raises, never shows a stack trace."""
    try:
        _require_text(arguments)
        if COMPLETION in os.environ:
            typer.main.get_command(command_line(_written()))(prog_name=PROGRAM)
        # Not ``main``: it exits with 1, the code of a violation, when a command meets a broken pipe of its own.
        command = typer.main.get_command(command_line(arguments))
        with command.make_context(PROGRAM, arguments or ["--help"]) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:  # of shell completion, whose 1 means a shell that it does not know
        return EXIT_USAGE if end.code else 0
    except (Interrupted, KeyboardInterrupt, typer.Abort) as error:
        with deaf():
            _end_spark()
            say_error(str(error) or INTERRUPTED)
        return EXIT_CRASH
    except Exception as error:  # noqa: BLE001 - the edge of the program: whatever it is becomes one sentence
        return _fail(error, arguments)
    return 0


def _written() -> list[str]:
    return [word for name in WORDS for word in os.environ.get(name, "").split()]


def close(code: int) -> int:
    """Write what is still buffered; return the exit code, which a reader that has left does not change."""
    try:
        streams.finish()
    except HarnessError as error:
        say_error(str(error))
        return error.exit_code
    return code


def _end_spark() -> None:
    """End Spark's processes, if a command started them: it would not notice this process's end for a second."""
    spark = sys.modules.get("nemesis.history.spark")
    if spark is not None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # it logs that its JVM is gone
        spark.kill()


def _require_text(arguments: Sequence[str]) -> None:
    """Raise ``UsageError`` for an empty argument, and for names that a file, a JVM or a JSON file cannot have."""
    named = {f"argument {number}": text for number, text in enumerate(arguments, start=1)}
    for label, text in named.items():
        if not text.strip():
            raise UsageError(
                f"{label}: expected a name or a value, got an empty text: leave it out"
            )
        if "\0" in text:
            raise UsageError(
                f"{label}: {text!r} has a null character, which no name has: leave it out"
            )
    directories = {
        "the working directory": _working_directory(),
        "the installation": str(Path(__file__).parent),
    }
    for label, text in {**named, **directories}.items():
        try:
            os.fsencode(text).decode()
        except UnicodeError:
            raise UsageError(
                f"{label}: expected UTF-8, got {os.fsencode(text)!r}: give it a name in UTF-8"
            ) from None


def _working_directory() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError(
            "the working directory does not exist any more: change to one that exists"
        ) from None


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    """Report an error in one sentence; return its exit code."""
    if (format_message := getattr(error, "format_message", None)) is not None:
        command = next((f" {name}" for name in arguments[:1] if name in COMMANDS), "")
        say_error(
            f"{format_message().rstrip('.?')}: `{PROGRAM}{command} --help` says what is allowed"
        )
        return EXIT_USAGE
    if (known := _exit_code(error)) is not None:
        say_error(str(error))
        return known
    if isinstance(error, ModuleNotFoundError) and (missing := sentence_about(error)) is not None:
        say_error(missing)
        return EXIT_USAGE
    if isinstance(error, OSError) and error.errno in FORBIDDEN and error.filename is not None:
        say_error(
            f"{os.fsdecode(error.filename)}: {error.strerror}: "
            "run nemesis as the owner of the directory, or on a copy of it, or choose another --store"
        )
        return EXIT_USAGE
    if isinstance(error, OSError) and error.errno in UNUSABLE and error.filename is not None:
        say_error(
            f"{os.fsdecode(error.filename)[:MAX_NAME]}: {error.strerror}: choose another path"
        )
        return EXIT_USAGE
    if isinstance(error, OSError) and error.errno in FULL:
        say_error(
            "no space is left on the disk: free some, or choose another --store, and try again"
        )
        return EXIT_CRASH
    say_error(f"nemesis itself failed ({_brief(error)}): the stack trace is in {_keep_trace()}")
    return EXIT_CRASH


def _exit_code(error: Exception) -> int | None:
    """Return the code of an error whose message is a sentence for the user; ``None`` for any other."""
    if isinstance(error, NemesisError):
        return error.exit_code
    if isinstance(error, HistoryError | SparkError):
        return EXIT_USAGE
    # Imported when something has failed: it takes a second, and most commands do without.
    from nemesis.interfaces.errors import FaultUnsupported, RuntimeFailure

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
            "w",
            prefix="nemesis-crash-",
            suffix=".log",
            delete=False,
            encoding="utf-8",
            errors="backslashreplace",
        ) as log:
            log.write(f"command: {shlex.join(sys.argv)}\n\n{traceback.format_exc()}")
            return log.name
    except OSError as error:
        return f"no file ({error.strerror})"
