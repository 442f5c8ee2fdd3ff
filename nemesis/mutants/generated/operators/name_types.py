"""Types of names and attributes, as far as annotations of the reference tell them.

A generated mutant confuses variables of the same type. An exact inference would be a type checker; annotations and
agreement by name suffice: an attribute has a type when all classes of the reference that have an attribute of this name
annotate it alike. What is not known is not mutated.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from nemesis.mutants.generated.sources import ROOT, Function, FunctionNode, tree_of

UNSPECIFIC: Final = ("Any", "object", "Callable", "None", "Iterator", "ContextManager")


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a tree's classes and functions say of types."""

    attributes: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Class → attribute → annotation; properties included, those of base classes not."""
    bases: dict[str, list[str]] = field(default_factory=dict)
    returns: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, tree: ast.Module) -> None:
        """Take in a module."""
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name, bases=bases):
                    self.bases[name] = [b.id for b in bases if isinstance(b, ast.Name)]
                    for attribute, annotation in _attributes_of(node):
                        self.attributes[name][attribute] = annotation
                case ast.FunctionDef() | ast.AsyncFunctionDef() if node.returns is not None:
                    self.returns[node.name].add(ast.unparse(node.returns))

    def of_class(self, name: str) -> dict[str, str]:
        """Return the attributes of a class and its bases."""
        inherited = [self.of_class(base) for base in self.bases.get(name, ())]
        result: dict[str, str] = {}
        for attributes in (*inherited, self.attributes.get(name, {})):
            result.update(attributes)
        return result

    def owners(self, attribute: str) -> list[str]:
        """Return the classes that declare an attribute."""
        return [name for name, attributes in self.attributes.items() if attribute in attributes]

    def agreed(self, attribute: str) -> str | None:
        """Return the type of an attribute on which all classes agree."""
        types = {self.attributes[owner][attribute] for owner in self.owners(attribute)}
        return types.pop() if len(types) == 1 else None


def _attributes_of(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, ast.unparse(annotation)
            case ast.FunctionDef(name=name, returns=returns, decorator_list=decorators):
                if returns is not None and any(
                    isinstance(d, ast.Name) and d.id == "property" for d in decorators
                ):
                    yield name, ast.unparse(returns)
                if name == "__init__":
                    yield from _initialised(statement)


def _initialised(constructor: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    parameters = dict(parameters_of(constructor))
    for statement in constructor.body:
        match statement:
            case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
                yield name, ast.unparse(annotation)
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=source)):
                if source in parameters:
                    yield name, parameters[source]
            case ast.Assign(
                targets=[ast.Attribute(attr=name)], value=ast.Constant(value=int() as v)
            ):
                yield name, type(v).__name__


def parameters_of(node: FunctionNode) -> Iterator[tuple[str, str]]:
    """Yield name and annotation of each annotated parameter."""
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if argument.annotation is not None:
            yield argument.arg, ast.unparse(argument.annotation)


@cache
def annotations_of_reference() -> Annotations:
    """Return the annotations of the whole reference."""
    result = Annotations()
    for path in sorted(ROOT.rglob("*.py")):
        result.add(tree_of(path.relative_to(ROOT).with_suffix("").as_posix()))
    return result


@dataclass(frozen=True, slots=True)
class NameTypes:
    """Types inside one function."""

    known: Annotations
    class_name: str | None
    variables: Mapping[str, str]

    def of(self, node: ast.expr) -> str | None:
        """Return the annotation of an expression, None when it is not known."""
        match node:
            case ast.Name(id=name):
                return self.variables.get(name)
            case ast.Attribute(attr=name):
                owner = self.owner(node)
                return self.known.of_class(owner).get(name) if owner else self.known.agreed(name)
            case ast.Await(value=value):
                return self.of(value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                returns = self.known.returns.get(name, set())
                return next(iter(returns)) if len(returns) == 1 else None
            case ast.Constant(value=int(value)):
                return type(value).__name__
        return None

    def owner(self, node: ast.Attribute) -> str | None:
        """Return the class whose attribute is read, None when it is not known."""
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.class_name
        declared = self.of(node.value)
        if declared is not None:
            plain = declared.removesuffix(" | None").strip("'\"")
            return plain if plain in self.known.attributes else None
        owners = self.known.owners(node.attr)
        return owners[0] if len(owners) == 1 else None

    def siblings(self, node: ast.Attribute) -> Iterator[str]:
        """Yield the other attributes of the same object and type, by name."""
        owner, kind = self.owner(node), self.of(node)
        if owner is None or kind is None or is_unspecific(kind):
            return
        is_self = isinstance(node.value, ast.Name) and node.value.id == "self"
        for name, other in sorted(self.known.of_class(owner).items()):
            if other == kind and name != node.attr and (is_self or not name.startswith("_")):
                yield name


def is_unspecific(annotation: str) -> bool:
    """Return whether values of this annotation need not be alike."""
    return any(annotation.startswith(name) for name in UNSPECIFIC)


@cache
def types_of(function: Function) -> NameTypes:
    """Return the types inside a function: parameters, annotated variables, and what is assigned from known types."""
    known = annotations_of_reference()
    variables = dict(parameters_of(function.node))
    types = NameTypes(known, function.class_name, variables)
    for node in function.nodes:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                variables[name] = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in variables:
                kind = types.of(value)
                if kind is not None:
                    variables[name] = kind
    return types
