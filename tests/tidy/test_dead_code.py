"""No dead code: whatever the product defines, the product, its benchmarks or its images use.

Vulture collects definitions and uses by name. Tests are not among its files, so a method that only tests call is dead,
too. A name that is used anywhere counts as used everywhere; dead code with an ordinary name escapes this test.
"""

from __future__ import annotations

import re

from vulture import Vulture

from nemesis.cli.app import COMMANDS
from tests.tidy.sources import HELPERS, PACKAGES, ROOT, python_files, relative

EXCEPTIONS = {
    "asyncio calls these methods of loops, servers, transports and protocols": (
        "abort_clients can_write_eof close_clients get_protocol get_write_buffer_limits get_write_buffer_size"
        " pause_writing resume_writing run_forever run_in_executor serve_forever start_serving"
        " _log_destroy_pending"
    ),
    "parameters that asyncio passes by name": "backlog executor",
    "numba's dispatcher calls this method, and reads this attribute": "load_overload _cache",
    "io.RawIOBase and yaml.SafeDumper call these methods": "readable ignore_aliases",
    "isinstance calls it": "__instancecheck__",
    "Python calls these functions of a module (PEP 562)": "__getattr__ __dir__",
    "kazoo reads these attributes of a handler": "callback_queue completion_queue",
    "a fault's detail contains this field": "torn_files",
    "numbers of ZooKeeper's transactions and of client operations: each enumeration lists all of them": (
        "SET_ACL RECONFIG POLL_FAIL POLL_INFO"
    ),
    "tests read small generated histories with it": "in_memory",
    "keys of scenarios that a run is judged by, which reads them from run.json": (
        "expect leaderless_s controllerless_s unwritable_s"
    ),
}
"""Names without a use in this repository's own code, by the reason why they stay."""


DECLARED = ["@declares", "@invokes", "@answers"]
"""These decorators register a class with the vocabulary of a history, which uses it."""


def names_in_templates() -> set[str]:
    templates = (ROOT / "reports" / "templates").iterdir()
    return {name for path in templates for name in re.findall(r"\w+", path.read_text("utf-8"))}


def unused() -> list[tuple[str, str]]:
    """Place and name of each definition without a use."""
    vulture = Vulture(ignore_decorators=DECLARED)
    folders = [folder for folder in HELPERS if folder != "tests"]
    vulture.scavenge(list(python_files(*PACKAGES, *folders)))
    return [
        (f"{relative(item.filename)}:{item.first_lineno}", item.name)
        for item in vulture.get_unused_code()
    ]


def test_nothing_is_dead() -> None:
    excepted = {name for names in EXCEPTIONS.values() for name in names.split()}
    dead = {name: position for position, name in unused()}
    used = names_in_templates() | {command.function for command in COMMANDS.values()}
    wrong = dead.keys() - used - excepted
    assert not wrong, "\n".join(
        f"{dead[name]} {name}: expected a use outside of tests, got none: remove it"
        for name in sorted(wrong)
    )
    assert not excepted - dead.keys(), "these exceptions are not needed: remove them"
