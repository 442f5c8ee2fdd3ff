"""What the harness raises, and which exit code each exception becomes.

::

    Exception
    ├── NemesisError
    │   ├── UsageError              exit 254: the request is invalid
    │   │   └── MissingRequirement  exit 254: this machine lacks something; ``nemesis doctor`` says what
    │   └── HarnessError            exit 255: our own failure, never a verdict
    ├── FaultUnsupported            exit 254: the runtime cannot do what the plan asks, seen before the start
    └── RuntimeFailure              exit 255: the runtime broke (a process did not start, a proxy died)

The last two are in ``nemesis.interfaces.errors``. A failure of the harness is never reported
as a failure of the system under test, nor as a pass. Every message is one sentence that names the offending value
and, where there is one, the cure.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_USAGE = 254
EXIT_CRASH = 255


class NemesisError(Exception):
    """An error that users see as one sentence instead of a stack trace."""

    exit_code: ClassVar[int] = EXIT_CRASH


class UsageError(NemesisError):
    """An unknown name, a value out of range, a broken file. Raised before anything is written; fix the input."""

    exit_code = EXIT_USAGE


class MissingRequirement(UsageError):
    """No Java, no jars, a port in use, a store that cannot be written. Not raised for a cluster that breaks later."""


class HarnessError(NemesisError):
    """The harness failed at its own work after the start. Not the target's fault and not a verdict: report it."""
