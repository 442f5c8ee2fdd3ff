"""A Spark cluster of other machines: reaching its master, giving its workers our code, not waiting for ever.

Spark itself waits without end for workers that nobody started, and for a minute for a master that is not there. Here
each of these is a sentence within a bounded time. What a user has to see to: the run lies on a path that all machines
see, or on a file system that all of them reach; the workers' Python is of our version and has our libraries
(``PYSPARK_PYTHON`` names it if it is not where ours is). Our own packages are shipped.

A worker that dies costs its tasks, which Spark gives to another: tasks are pure, or write a file that appears whole
under its name, so a task may run twice, even at the same time.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import re
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nemesis.history.errors import SparkError

if TYPE_CHECKING:
    from pyspark import SparkContext

SHIPPED_PACKAGES: Final = ("history", "checkers")
SHIPPED_MODULES: Final = ("__init__.py", "registry.py")
"""Files of the package ``nemesis`` itself."""
WHAT_TASKS_IMPORT: Final = ("nemesis.history", "nemesis.checkers", "nemesis.history.ingest")
WHAT_SOME_TASKS_IMPORT: Final = ("numba", "scipy")
"""Only looked for: they take long to import."""
STANDALONE: Final = "spark://"
DEFAULT_PORT: Final = 7077
ANSWER_WITHIN_S: Final = 10.0
WORKERS_WITHIN_S: Final = 60.0
LOOK_EVERY_S: Final = 0.25
_ERROR: Final = re.compile(r"[\w.]+(Error|Exception): ")


def is_local(master: str) -> bool:
    """Whether Spark's workers run in this machine's own process tree."""
    return master == "local" or master.startswith("local[")


def driver_address(master: str) -> str | None:
    """Return the address at which the machines of a standalone cluster reach us: the one at which its master does.

    ``None`` for other kinds of clusters, which Spark is left to find out about. Raises SparkError when no master
    answers.
    """
    if not master.startswith(STANDALONE):
        return None
    refusals = []
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = (
            address.rpartition(":") if ":" in address else (address, "", str(DEFAULT_PORT))
        )
        try:
            target = (host.strip("[]"), int(port))
            with socket.create_connection(target, timeout=ANSWER_WITHIN_S) as connection:
                return str(connection.getsockname()[0])
        except (OSError, ValueError, OverflowError) as error:
            refusals.append(f"{address}: {error}")
    raise SparkError(f"no Spark master answers at {master} ({'; '.join(refusals)})")


def prepare(context: SparkContext) -> None:
    """Wait for a worker, give the workers our packages, and see that they can use them. Raises SparkError."""
    _await_worker(context)
    _ship_packages(context)
    try:
        with patience(context):
            missing = context.parallelize(range(2), 2).map(_try_imports).collect()
    except SparkError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever keeps a worker's Python from running becomes one sentence
        missing = [_brief(str(error))]
    if any(missing):
        reason = next(import_error for import_error in missing if import_error)
        raise SparkError(f"the workers of {context.master} cannot run our tasks: {reason}")


@contextmanager
def patience(context: SparkContext) -> Iterator[None]:
    """Run a job; raise SparkError when it fails because of the cluster, or when all workers have been gone too long.

    An error in the code of a task is let through as it is.
    """
    from py4j.protocol import Py4JError

    over, deserted = threading.Event(), threading.Event()

    def watch() -> None:
        last_worker_s = time.monotonic()
        # When Spark itself is gone nobody has to tell the job.
        with suppress(Py4JError, OSError):
            while not over.wait(LOOK_EVERY_S):
                if workers(context):
                    last_worker_s = time.monotonic()
                elif time.monotonic() - last_worker_s > WORKERS_WITHIN_S:
                    deserted.set()
                    context.cancelAllJobs()
                    return

    watcher = threading.Thread(target=watch, name="spark-workers", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if deserted.is_set():
            raise SparkError(_nobody(context.master)) from error
        if "PythonException" in str(error):
            raise
        raise SparkError(f"{context.master} failed: {_brief(str(error))}") from error
    finally:
        over.set()
        watcher.join()


def _brief(trace: str) -> str:
    """What tells, of pages of Java and Python: the innermost error of the first line that names one."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    named = [line for line in lines if _ERROR.search(line) and "Traceback (most" not in line]
    first = (named or lines or ["it does not say why"])[0]
    errors = list(_ERROR.finditer(first))
    return first[errors[-1].start() if errors else 0 :][:300]


def _nobody(master: str) -> str:
    return (
        f"no worker of {master} has offered itself for {WORKERS_WITHIN_S:g} s: "
        "none is alive, or none has a core and 512 MB to spare"
    )


def workers(context: SparkContext) -> int:
    """How many executors there are; the driver counts as one for Spark."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001


def _await_worker(context: SparkContext) -> None:
    deadline = time.monotonic() + WORKERS_WITHIN_S
    while not workers(context):
        if time.monotonic() > deadline:
            raise SparkError(_nobody(context.master))
        time.sleep(LOOK_EVERY_S)


def _ship_packages(context: SparkContext) -> None:
    """Give the workers, also those that join later, the code that tasks refer to by name."""
    root = Path(__file__).resolve().parent.parent
    (root_package,) = map(Path, importlib.import_module("nemesis").__path__)
    staging = Path(tempfile.mkdtemp(prefix="nemesis-spark-"))
    atexit.register(shutil.rmtree, staging, ignore_errors=True)
    (staging / "code" / "nemesis").mkdir(parents=True)
    for module in SHIPPED_MODULES:
        shutil.copy2(root_package / module, staging / "code" / "nemesis" / module)
    for package in SHIPPED_PACKAGES:
        target = staging / "code" / "nemesis" / package
        shutil.copytree(root / package, target, ignore=shutil.ignore_patterns("__pycache__"))
    context.addPyFile(shutil.make_archive(str(staging / "nemesis"), "zip", staging / "code"))


def _try_imports(_: int) -> str | None:
    """What a worker lacks. Its own modules have been found when it gets here: this one is among them."""
    try:
        for name in WHAT_TASKS_IMPORT:
            importlib.import_module(name)
    except ImportError as error:
        return f"{error} on {socket.gethostname()}"
    missing = [name for name in WHAT_SOME_TASKS_IMPORT if importlib.util.find_spec(name) is None]
    return f"No module named '{missing[0]}' on {socket.gethostname()}" if missing else None
