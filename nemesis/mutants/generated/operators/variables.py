"""The wrong variable of the same type: another parameter or local variable, another attribute of the same object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.operators.name_types import is_unspecific, types_of
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import copied, is_chain, probe_call
from nemesis.mutants.probe import Probe


def wrong_variables(function: Function) -> Iterator[Change]:
    """A variable is read where another one of the same type was meant.

    The original is read, too, before the mutant's variable. Effective: the values differ, or reading the other raised.
    """
    types = types_of(function)
    for node in function.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in types.variables:
                kind = types.variables[name]
                others = [] if is_unspecific(kind) else _assigned_before(function, node)
                for other in others:
                    if other != name and types.variables.get(other) == kind:
                        yield _replaced(function, node, ast.Name(other, ast.Load()))
            case ast.Attribute(ctx=ast.Load()) if is_chain(node) and not _is_callee(function, node):
                for attribute in types.siblings(node):
                    other_node = ast.Attribute(copied(node.value), attribute, ast.Load())
                    yield _replaced(function, node, other_node)


def _is_callee(function: Function, node: ast.expr) -> bool:
    parent = function.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _assigned_before(function: Function, node: ast.Name) -> list[str]:
    """Return the parameters, and the variables that the statements above in the same and outer blocks assign.

    A variable that another branch assigns might not exist: that would be a crash and no confusion.
    """
    arguments = function.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    blocks = {id(item): block for item, block in function.statements()}
    current: ast.AST = node
    while current is not function.node:
        if isinstance(current, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            break  # a nested function runs later, perhaps with other values of the variables
        if isinstance(current, ast.stmt) and id(current) in blocks:
            block = blocks[id(current)]
            for statement in block[: block.index(current)]:
                match statement:
                    case (
                        ast.Assign(targets=[ast.Name(id=name)])
                        | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())
                    ):
                        names.append(name)
        current = function.parents[current]
    return sorted(set(names) - {"self", "cls"})


def _replaced(function: Function, node: ast.expr, other: ast.expr) -> Change:
    """Both are read where the original is; the original first, so that it raises where it always did."""
    original = probe_call(Probe.original, copied(node))
    probed = probe_call(Probe.replaced, original, other)
    parent = function.parents[node]
    outer = parent if isinstance(parent, ast.expr | ast.keyword | ast.Return) else node
    texts = ast.unparse(outer), ast.unparse(copied(outer, {node: other}))
    return Change(node, *texts, {node: probed})
