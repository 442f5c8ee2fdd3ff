"""What import-linter's contracts cannot say: no cycle of imports, and one import name for everything.

Imports under ``TYPE_CHECKING`` and inside of functions count like any other.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import grimp
import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
TOP_FOLDERS = ("history", "reference", "checkers", "workloads", "reports")
PYTHON_FOLDERS = (*TOP_FOLDERS, "nemesis", "tests", "benchmarks", ".ci")
TEXT_FILES = ("Makefile", "pyproject.toml", "README.md")
OLD_NAME = re.compile(rf"\bpython3? -m ({'|'.join(TOP_FOLDERS)})\b")


@cache
def imports() -> nx.DiGraph[str]:
    """The modules of nemesis, with an edge from each importer to what it imports."""
    graph = grimp.build_graph("nemesis", cache_dir=None)
    edges = [
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    ]
    return nx.DiGraph(edges)


def cycles(graph: nx.DiGraph[str]) -> list[list[str]]:
    return [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def between_siblings(edges: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield each import as one between the two children of the package that both modules share."""
    for importer, imported in edges:
        a, b = importer.split("."), imported.split(".")
        shared = next(
            (depth for depth, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None
        )
        if shared is not None:
            yield ".".join(a[: shared + 1]), ".".join(b[: shared + 1])


def test_no_modules_import_each_other_in_a_cycle() -> None:
    assert cycles(imports()) == []


def test_no_packages_import_each_other() -> None:
    assert cycles(nx.DiGraph(between_siblings(imports().edges))) == []


def test_the_graph_sees_imports_of_all_kinds() -> None:
    graph = imports()
    assert graph.has_edge("nemesis.cli.app", "nemesis.interfaces.errors"), "inside of a function"
    assert graph.has_edge("nemesis.checkers", "nemesis.registry"), "in a top-level folder"


def test_a_cycle_is_found() -> None:
    edges = [("n.a.x", "n.b.y"), ("n.b.z", "n.a.w"), ("n.a.x", "n.a.w")]
    assert cycles(nx.DiGraph(edges)) == []
    assert cycles(nx.DiGraph(between_siblings(edges))) == [["n.a", "n.b"]]


def checkers_layers() -> dict[str, int]:
    """The layer of each part of ``nemesis.checkers`` that the contract lists, by its name, the lowest 0."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (
        contract["layers"]
        for contract in contracts
        if contract.get("containers") == ["nemesis.checkers"]
    )
    return {
        name: number for number, layer in enumerate(reversed(layers)) for name in layer.split(" : ")
    }


def upward(edges: Iterable[tuple[str, str]], layers: dict[str, int]) -> list[tuple[str, str]]:
    """Return the imports inside checkers that run upward; what has no layer is a property, as ``log`` is."""
    parent = "nemesis.checkers."
    return sorted(
        {
            (importer, imported)
            for importer, imported in between_siblings(edges)
            if importer.startswith(parent)
            and imported.startswith(parent)
            and layers.get(importer.removeprefix(parent), layers["log"])
            < layers.get(imported.removeprefix(parent), layers["log"])
        }
    )


def test_a_property_without_a_layer_is_imported_only_from_above() -> None:
    layers = checkers_layers()
    assert "controller" not in layers
    assert upward(imports().edges, layers) == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [("framework.fold", "controller"), ("znodes", "new"), ("new", "checking"), ("new", "pages")],
)
def test_an_import_around_a_property_without_a_layer_is_found(importer: str, imported: str) -> None:
    parent = "nemesis.checkers"
    edges = [(f"{parent}.{importer}", f"{parent}.{imported}"), (f"{parent}.new", f"{parent}.log.x")]
    assert len(upward(edges, checkers_layers())) == 1


def python_files() -> list[Path]:
    """Our own files, each once: the links in ``nemesis/`` are not followed."""
    paths = (path for folder in PYTHON_FOLDERS for path in (ROOT / folder).rglob("*.py"))
    linked = {ROOT / "nemesis" / folder for folder in TOP_FOLDERS}
    return [path for path in paths if linked.isdisjoint(path.parents)]


def old_names(tree: ast.AST) -> Iterator[str]:
    """Yield the top-level folders that a file imports as if they were packages of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in TOP_FOLDERS)


def test_everything_is_imported_as_nemesis() -> None:
    wrong = {
        str(path.relative_to(ROOT)): names
        for path in python_files()
        if (names := sorted(old_names(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert wrong == {}


@pytest.mark.parametrize("text", ["import history", "from checkers.log import ClientLog"])
def test_an_old_name_is_found(text: str) -> None:
    assert list(old_names(ast.parse(text)))
    assert not list(
        old_names(ast.parse("from nemesis.history import events\nfrom . import history"))
    )


def test_no_command_starts_a_module_by_its_old_name() -> None:
    files = [ROOT / name for name in TEXT_FILES]
    files += [
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / ".ci").iterdir(),
        *(ROOT / "compose").iterdir(),
    ]
    files += (ROOT / ".github").rglob("*.yml")
    wrong = [
        (str(path.relative_to(ROOT)), match.group())
        for path in files
        if path.is_file()
        for match in OLD_NAME.finditer(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []
