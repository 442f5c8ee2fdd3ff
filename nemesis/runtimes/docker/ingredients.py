"""What goes into the image of a node: the brokers' code, the packages that it imports, ZooKeeper's jars, ``compose/``,
and the library that moves its wall clock.

The code is what the two ways to start a broker import, directly or not, so that a change of a checker is no change of
the image. Found by reading the import statements; a module imported by a computed name is not found.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from nemesis.runtimes.clock_control import library
from nemesis.runtimes.docker.packages import THIRD_PARTY, pinned
from nemesis.support.errors import MissingRequirement
from nemesis.support.java import zookeeper_classpath

_PARSER: Final = Lock()
"""CPython 3.11 counts the depth of a tree for all threads together (gh-106905), and two that parse at once break it."""
PROJECT: Final = Path(__file__).parents[3]
COMPOSE: Final = PROJECT / "compose"
DOCKERFILE: Final = COMPOSE / "Dockerfile"

ENTRY_MODULES: Final = (
    "nemesis.reference.__main__",
    "nemesis.runtimes.reference_launcher",
    "nemesis.runtimes.kafka_launcher",
)
OWN_PACKAGE: Final = "nemesis"

FOREIGN_JARS: Final = re.compile(r"-(osx|windows|linux)-(x86_64|aarch_64|riscv64)\.jar$")
"""Native code for other ways to speak than ZooKeeper's own."""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """Everything but the base. ``code``, ``jars`` and ``clock`` are files by their place in the build context."""

    code: dict[str, Path]
    jars: dict[str, Path]
    clock: dict[str, Path]
    packages: tuple[str, ...]
    """Pinned requirements, in order."""

    @classmethod
    def installed(cls) -> Ingredients:
        """Return those of this installation; raises ``MissingRequirement`` when something is not installed."""
        if not DOCKERFILE.is_file():
            raise MissingRequirement(
                f"{DOCKERFILE} is missing: run nemesis from its source directory"
            )
        jars = (jar for jar in zookeeper_classpath() if not FOREIGN_JARS.search(jar.name))
        return cls(
            code={
                f"code/{file}": PROJECT / file for file in imported_files(PROJECT, ENTRY_MODULES)
            },
            jars={f"zookeeper/{jar.name}": jar for jar in jars},
            clock=clock_files(),
            packages=pinned(THIRD_PARTY),
        )

    @property
    def settled(self) -> dict[str, Path]:
        """Everything that is a file already, by its place in the build context."""
        return {
            **self.code,
            **self.jars,
            **self.clock,
            "node": COMPOSE / "node",
            "zookeeper/log4j2.properties": COMPOSE / "log4j2.properties",
            "Dockerfile": DOCKERFILE,
        }

    def digest(self, base: str) -> str:
        """Return what changes exactly when an image built of these on that base would."""
        total = hashlib.sha256()
        for part in (base, platform.machine(), *self.packages):
            total.update(part.encode() + b"\0")
        for destination, file in sorted(self.settled.items()):
            # A jar is known by its name and size: PySpark's do not change under one name.
            content = (
                str(file.stat().st_size).encode() if destination in self.jars else file.read_bytes()
            )
            total.update(destination.encode() + b"\0" + hashlib.sha256(content).digest())
        return total.hexdigest()[:16]

    def lay_out(self, folder: Path, packages: Path) -> None:
        """Make the build context in an empty folder; raises OSError."""
        for destination, file in self.settled.items():
            target = folder / destination
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
        shutil.copytree(packages, folder / "packages")


def clock_files() -> dict[str, Path]:
    """Return what moves wall clocks, with its source; the source alone on a machine that cannot compile it."""
    files = {f"clock/{library.SOURCE.name}": library.SOURCE}
    if (result := library.found_library()) is not None:
        files["clock/wall-clock.so"] = result
    return files


def imported_files(root: Path, modules: tuple[str, ...]) -> list[Path]:
    """Return the files under ``root`` of these modules and of all of ours that they import, sorted, relative."""
    collected: set[Path] = set()
    waiting = list(modules)
    while waiting:
        for file in _files_of(root, waiting.pop()):
            if file not in collected:
                collected.add(file)
                waiting += imports(root / file)
    return sorted(collected)


def imports(file: Path) -> Iterator[str]:
    """Yield the names of our modules that a file may import, wherever in it; some name no module but what one holds.

    Imports for type checkers alone are left out: they are never executed.
    """
    with _PARSER:
        tree = ast.parse(file.read_bytes())
    for statement in _executed(tree):
        names: list[str] = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module is not None:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        yield from (name for name in names if name.partition(".")[0] == OWN_PACKAGE)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a syntax tree's nodes, without the bodies of ``if TYPE_CHECKING``."""
    yield node
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children = node.orelse
    for child in children:
        yield from _executed(child)


def _files_of(root: Path, name: str) -> Iterator[Path]:
    """Yield the files that importing this name executes, its packages' first."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = Path(*parts[:length])
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if (root / file).is_file():
                yield file
