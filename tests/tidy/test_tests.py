"""No module imports a test: a helper has a module of its own, named after its content, or is a fixture."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import HELPERS, PACKAGES, parsed, python_files, relative


def imports_of_tests(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each test module that is imported, at the top or inside a function."""
    for node in ast.walk(module):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=package, names=aliases):
                names = [package or "", *(f"{package}.{alias.name}" for alias in aliases)]
            case _:
                continue
        yield from ((node.lineno, name) for name in names if is_test_module(name))


def is_test_module(name: str) -> bool:
    package, _, last = name.rpartition(".")
    return package.split(".")[0] == "tests" and last.startswith("test_")


def test_no_module_imports_a_test() -> None:
    wrong = [
        f"{relative(path)}:{line} imports {name}: move what both need to a module that is no test"
        for path in python_files(*PACKAGES, *HELPERS)
        for line, name in imports_of_tests(parsed(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_an_import_of_a_test_is_noticed_wherever_it_stands() -> None:
    module = ast.parse(
        "from tests.a.test_b import c\n"
        "def f():\n    from tests.a import test_d, helper\n    import tests.a.test_e\n"
    )
    assert list(imports_of_tests(module)) == [
        (1, "tests.a.test_b"),
        (3, "tests.a.test_d"),
        (4, "tests.a.test_e"),
    ]
