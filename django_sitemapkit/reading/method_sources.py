"""What a method returns, as one expression: from its source, if that is its source.

A method is read as the expression that it returns. Assignments to a name and conditions before a
``return`` become part of it; any other statement has to be executed. The source counts only where
it compiles to the very code of the function: a patched or decorated function, and a file that has
changed since it was imported, do not have it.
"""

import ast
import inspect
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

MAX_NODES = 1_000
"""Parts of an expression; a name may stand for it several times."""

MAX_STEPS = 50
"""Statements that are followed, each on every way to a ``return``."""

_nodes: dict[CodeType, ast.FunctionDef | ast.Lambda] = {}
"""The sources that were found. They stay those of the code, whatever becomes of the file."""


class MustBeCalled(Exception):
    """Raised if a method cannot be read as columns, with the reason and the place in its source."""

    def __init__(
        self, why: str, code: CodeType | None = None, node: Any = None, *, change: str = ""
    ) -> None:
        super().__init__(why)
        self.why = why
        """A sentence without a subject or a full stop, such as "calls slugify()"."""
        self.change = change
        """What to change in the method, such as "return one expression", or ""."""
        self.file = code.co_filename if code else ""
        self.line = getattr(node, "lineno", code.co_firstlineno if code else 0)
        self.expression = ""
        with suppress(ValueError):  # Python 3.11 cannot write each f-string.
            self.expression = ast.unparse(node).splitlines()[0] if node is not None else ""


@dataclass(frozen=True, slots=True)
class MethodSource:
    """The expression that a function returns, and the means to resolve its names."""

    function: FunctionType
    result: ast.expr
    """The expression that it returns."""
    parameters: tuple[str, ...]
    """The names of its parameters."""
    imported: Mapping[str, Any] = field(default_factory=dict)
    """What it imports itself, by name."""

    def resolve(self, name: str) -> Any:
        """Return the value of a name that is no parameter; None if it is not known."""
        if name in self.imported:
            return self.imported[name]
        function: Any = self.function
        code = function.__code__
        if name in (*code.co_varnames, *code.co_cellvars):
            return None
        return function.__globals__.get(name, function.__builtins__.get(name))


def attribute_source(function: FunctionType, name: str | None) -> MethodSource:
    """Return a MethodSource whose function returns the attribute ``name`` of its argument.

    If ``name`` is None, it returns None.
    """
    result: ast.expr = ast.Constant(None)
    if name is not None:
        result = ast.Attribute(ast.Name("item", ast.Load()), name, ast.Load())
    return MethodSource(function, result, ("item",))


def method_source(function: Any) -> MethodSource:
    """Return the MethodSource of a function: the expression that it returns.

    Raises MustBeCalled if its source is not known, or has a statement that must be executed.
    """
    if not isinstance(function, FunctionType):
        raise MustBeCalled(
            f"is {type(function).__name__}, not a function",
            change="write a method without a decorator",
        )
    code = function.__code__
    if getattr(function, "reads_objects", False):
        raise MustBeCalled("has reads_objects set", code, change="remove reads_objects")
    if function.__closure__ or code.co_kwonlyargcount:
        raise MustBeCalled(
            "is a closure, or takes arguments by keyword alone",
            code,
            change="remove its decorators and arguments",
        )
    if code.co_flags & inspect.CO_GENERATOR:
        raise MustBeCalled("is a generator", code)
    node = _syntax_node_of(function)
    parameters = code.co_varnames[: code.co_argcount]
    if isinstance(node, ast.Lambda):
        return MethodSource(function, node.body, parameters)
    body = _BodyReader(code)
    return MethodSource(function, body.expression_of(node.body, {}), parameters, body.imported)


def _syntax_node_of(function: FunctionType) -> ast.FunctionDef | ast.Lambda:
    """Return the node of a function in the syntax tree of its source.

    Raises MustBeCalled unless exactly one function there compiles to the same code.
    """
    code = function.__code__
    if code not in _nodes:
        linecache.checkcache(code.co_filename)
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        found = _function_nodes(text).get(code, ()) if text else ()
        if len(found) != 1:
            raise MustBeCalled("has no source that compiles to the same code", code)
        _nodes[code] = found[0]
    return _nodes[code]


@lru_cache(maxsize=64)
def _function_nodes(text: str) -> Mapping[CodeType, Sequence[ast.FunctionDef | ast.Lambda]]:
    """Return the functions in a module's source, by the code that they compile to."""
    try:
        tree = ast.parse(text)
        codes = list(_codes_in(compile(text, "", "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return {}
    nodes: dict[tuple[str, int], list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            nodes.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            nodes.setdefault((node.name, first), []).append(node)
    return {code: nodes.get((code.co_name, code.co_firstlineno), ()) for code in codes}


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects of all functions and classes within a code object."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


class _BodyReader:
    """Turns the statements of a function into the expression that it returns."""

    def __init__(self, code: CodeType) -> None:
        self.imported: dict[str, Any] = {}
        self._code = code
        self._left = MAX_STEPS

    def expression_of(
        self, statements: Sequence[ast.stmt], known: Mapping[str, ast.expr]
    ) -> ast.expr:
        """Return the expression that some statements return, given the names assigned so far.

        Raises MustBeCalled for a statement that must be executed.
        """
        self._left -= 1
        if not self._left:
            raise MustBeCalled("has too many conditions", self._code)
        if not statements:
            return ast.Constant(None)
        match statements[0], statements[1:]:
            case ast.Return(value=value), _:
                return ast.Constant(None) if value is None else _with_assigned(known, value)
            case ast.Expr(value=ast.Constant()), rest:  # a docstring
                return self.expression_of(rest, known)
            case ast.ImportFrom(module=str(module), level=0, names=names), rest if not known:
                if all(
                    one.asname is None and self._record_import(module, one.name) for one in names
                ):
                    return self.expression_of(rest, known)
            case ast.Assign(targets=[ast.Name(id=name)], value=value), rest:
                value = _with_assigned(known, value)
                return _also_evaluating(value, self.expression_of(rest, {**known, name: value}))
            # A name that is imported further down has no value before that.
            case ast.If(test=test, body=body, orelse=orelse), rest if not any(
                isinstance(one, ast.ImportFrom) for one in (*body, *orelse, *rest)
            ):
                return ast.IfExp(
                    _with_assigned(known, test),
                    self.expression_of([*body, *rest], known),
                    self.expression_of([*orelse, *rest], known),
                )
        raise MustBeCalled(
            "has a statement that must be executed",
            self._code,
            statements[0],
            change="return one expression",
        )

    def _record_import(self, module: str, name: str) -> bool:
        """Record an imported name; return whether its value is known, so that it can be used."""
        parameters = self._code.co_varnames[: self._code.co_argcount]
        if name in (*parameters, *self.imported):
            return False
        self.imported[name] = getattr(sys.modules.get(module), name, None)
        return self.imported[name] is not None  # Otherwise, the import may raise.


def _with_assigned(known: Mapping[str, ast.expr], value: ast.expr) -> ast.expr:
    """Return an expression with the assigned values in the places of their names."""
    if not known:
        return value
    found: ast.expr = _Substitution(known).visit(deepcopy(value))
    if sum(1 for _ in ast.walk(found)) > MAX_NODES:
        raise MustBeCalled("is too long an expression")
    return found


def _also_evaluating(value: ast.expr, result: ast.expr) -> ast.expr:
    """Return an expression for ``result`` that always evaluates ``value`` as well.

    A value that is assigned and not used may raise, as it would in the method.
    """
    if any(one is value for one in _always_evaluated(result)):
        return result
    both = ast.Tuple([value, result], ast.Load())
    return ast.Subscript(both, ast.Constant(1), ast.Load())


def _always_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that are evaluated whatever its values are."""
    yield node
    match node:
        case ast.IfExp(test=test):
            parts: Iterable[ast.AST] = [test]
        case ast.BoolOp(values=[first, *_]):
            parts = [first]
        case ast.Compare(left=left, comparators=[first, *_]):
            parts = [left, first]
        case _:
            parts = ast.iter_child_nodes(node)
    for part in parts:
        yield from _always_evaluated(part)


class _Substitution(ast.NodeTransformer):
    """Replaces each name by the expression that was assigned to it."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._known.get(node.id, node)
