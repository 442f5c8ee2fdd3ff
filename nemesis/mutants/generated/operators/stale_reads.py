"""A stale read: code goes on with a value that it read when the function began.

Between the begin and the read stand an ``await`` or a call, so the value may have changed. That is what a value cached
in a local variable does, the most frequent error of asynchronous code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from nemesis.mutants.generated.mutation import Change
from nemesis.mutants.generated.sources import Function
from nemesis.mutants.generated.trees import (
    attributes_stored,
    constant,
    copied,
    is_chain,
    names_stored,
    probe_call,
    sequence,
)
from nemesis.mutants.probe import Probe

VALUE: Final = "_nemesis_stale"
NESTED: Final = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)  # fmt: skip


def stale_reads(function: Function) -> Iterator[Change]:
    """An attribute has the value of the function's begin.

    The present value is read, too. Effective: it differs from the stale one. Where the value could not be read at the
    begin (an attribute of None), the present one is used, and nothing differs.
    """
    if function.is_constructor:
        return
    arguments = function.node.args
    parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    body = function.node.body
    first = next((s for s in body if not _is_docstring(s)), None)
    rebound = {name for statement in body for name in names_stored(statement)}
    for node in function.nodes:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and is_chain(node)
            and _root(node) in parameters - rebound
            and first is not None
            and not _is_inner(function, node)
            and _may_have_changed(function, node)
        ):
            yield _stale(function, node, first)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node.id


def _is_inner(function: Function, node: ast.AST) -> bool:
    """Return whether it is a part of a longer chain, is called, or stands in a nested function."""
    parent = function.parents[node]
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
        return True
    while node is not function.node:
        if isinstance(node, NESTED):
            return True
        node = function.parents[node]
    return False


def _may_have_changed(function: Function, node: ast.Attribute) -> bool:
    """Return whether something above the read waits, calls a method for its effect, or assigns the attribute."""
    for other in function.nodes:
        line = getattr(other, "lineno", None)
        if line is None or line >= node.lineno:
            continue
        match other:
            case ast.Await() | ast.Expr(value=ast.Call()):
                return True
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                if node.attr in attributes_stored(other):
                    return True
    return False


def _stale(function: Function, node: ast.Attribute, first: ast.stmt) -> Change:
    stored = ast.Name(VALUE, ast.Store())
    read = ast.Try(
        [ast.Assign([stored], copied(node))],
        [
            ast.ExceptHandler(
                ast.Name("Exception", ast.Load()), None, [ast.Assign([stored], constant(...))]
            )
        ],
        [],
        [],
    )
    is_read = ast.Compare(ast.Name(VALUE, ast.Load()), [ast.IsNot()], [constant(...)])
    result = ast.IfExp(is_read, ast.Name(VALUE, ast.Load()), copied(node))
    probed = probe_call(Probe.replaced, probe_call(Probe.original, copied(node)), result)
    rest = copied(first, {node: probed})  # the read may stand in the first statement itself
    replacements: dict[ast.AST, ast.AST] = {first: sequence([read, rest]), node: probed}
    text = ast.unparse(function.statement_of(node)).partition("\n")[0]
    return Change(
        node, text, f"{ast.unparse(node)} as it was at the function's begin", replacements
    )
