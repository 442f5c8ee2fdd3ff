"""A kernel calls only kernels of its own file: of those of other files an older version could be kept on disk."""

from __future__ import annotations

import ast
from pathlib import Path

CHECKERS = Path(__file__).parents[2] / "checkers"


def kernels(module: ast.Module) -> list[ast.FunctionDef]:
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(item, ast.Name) and item.id == "compiled" for item in node.decorator_list
        )
    ]


def test_kernels_call_kernels_of_their_own_file() -> None:
    modules = {path: ast.parse(path.read_text()) for path in sorted(CHECKERS.rglob("*.py"))}
    everywhere = {(path, kernel.name) for path in modules for kernel in kernels(modules[path])}
    assert len(everywhere) > 10
    for path, module in modules.items():
        imported = {
            alias.asname or alias.name
            for node in module.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        foreign = {name for where, name in everywhere if where != path} & imported
        for kernel in kernels(module):
            used = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
            assert not used & foreign, f"{path.name}: {kernel.name} calls {used & foreign}"
