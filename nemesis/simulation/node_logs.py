"""What simulated nodes print: one text per node, with virtual times, apart from the log of the harness.

A real broker's log goes to a file of its own; here all nodes share the process's logging. Inside ``node_logs`` the
records of nodes come here, those of the harness go where they always do.

An unexpected exception in a node (a task that crashed, a handler that raised) is something that a broker survives and
no client need notice, yet a bug. ``errors`` collects them: a run that had any is in doubt.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from nemesis.simulation.incarnation import INCARNATION

LOGGERS = ("nemesis.reference", "asyncio", "nemesis.simulation")
"""Who prints on behalf of a node."""


class NodeLogs(logging.Handler):
    """Keeps the lines of every node. ``level`` is the least level that is kept."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.lines: dict[str, list[str]] = defaultdict(list)
        self.errors: list[str] = []
        """Unexpected exceptions in nodes, a sentence each."""

    def emit(self, record: logging.LogRecord) -> None:
        incarnation = INCARNATION.get()
        if incarnation is None or incarnation.is_dead:  # the dead are only taken down
            return
        if record.levelno >= logging.ERROR and record.exc_info:
            error = record.exc_info[1]
            self.errors.append(
                f"{incarnation.node} at {record.created:.3f} s: {error!r} in {record.name}"
            )
        seconds = f"{record.created:.6f}"
        about = f"{seconds} #{incarnation.number} {record.levelname} {record.name}: {record.getMessage()}"
        if record.exc_info:
            about += "\n" + logging.Formatter().formatException(record.exc_info)
        self.lines[incarnation.node].append(about)


@contextmanager
def node_logs(level: int) -> Iterator[NodeLogs]:
    """Divert what nodes print inside the block; nothing of it is shown."""
    handler = NodeLogs(level)
    root = logging.getLogger()
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    others = list(root.handlers)
    for other in others:
        other.addFilter(_is_of_harness)
    root.addHandler(handler)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(level)
    try:
        yield handler
    finally:
        for name, old in before.items():
            logging.getLogger(name).setLevel(old)
        root.removeHandler(handler)
        for other in others:
            other.removeFilter(_is_of_harness)


def _is_of_harness(_record: logging.LogRecord) -> bool:
    return INCARNATION.get() is None
