"""For all tests: how Hypothesis looks for examples, and how workers share the tests with real clusters.

Examples have no deadline: how long they take says how busy the machine is. ``make test`` tries the same examples each
time, so that a failure can be repeated and is that of a change; ``make nightly`` looks for new ones.

Told ``--dist loadgroup``, a worker gets all tests of a file, so that what they share is started once; and one worker
gets all that use the Docker engine or ``nemesis clean``, whatever file they are in. They look at everything that the
engine and the kernel have, and would take another test's for what was left behind. Their names say that they do.

A shell lets what it starts in the background ignore SIGINT, and children inherit that. Tests send SIGINT to theirs.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", untimed, derandomize=True)
settings.register_profile("nightly", untimed, derandomize=False, print_blob=True)
settings.load_profile("repeatable")

NAMES_OF_ENGINE_TESTS = ("docker", "_clean_")


def group_of(nodeid: str) -> str:
    """Return what a test belongs to: those of one group follow one another."""
    if any(name in nodeid for name in NAMES_OF_ENGINE_TESTS):
        return "engine"
    return nodeid.partition("::")[0]


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    if config.getvalue("dist") != "loadgroup":
        return None
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler
