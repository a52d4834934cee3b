"""Small helpers for libcst trees: dotted names, new statements, arguments, and awaits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import libcst as cst
from libcst import matchers as m
from libcst.metadata import QualifiedNameProvider, QualifiedNameSource

from .tables import PEERS


def dotted(node: cst.BaseExpression | None) -> str:
    """Return the text of a name or a chain of attributes, as in `self.server`; empty otherwise."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return ""


def expression(code: str) -> cst.BaseExpression:
    """Parse an expression."""
    return cst.parse_expression(code)


def statements(code: str) -> list[cst.BaseStatement]:
    """Parse statements."""
    parsed = cst.parse_module(code)
    body: list[Any] = list(parsed.body)
    if body and parsed.header:
        first = body[0]
        body[0] = first.with_changes(leading_lines=[*parsed.header, *first.leading_lines])
    return body


def code_of(node: cst.CSTNode) -> str:
    """Return the source text of a node."""
    return cst.Module(body=[]).code_for_node(node)


def peer_name(visitor: cst.MetadataDependent, node: cst.CSTNode) -> str:
    """Return the qualified name of what a node names in a peer's package; empty for all else."""
    found: Iterable[Any] = visitor.get_metadata(QualifiedNameProvider, node, set())
    for name in found:
        if name.source is QualifiedNameSource.IMPORT and name.name.split(".")[0] in PEERS:
            return str(name.name)
    return ""


def last(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def keyword(name: str, value: cst.BaseExpression | str) -> cst.Arg:
    """Return the argument `name=value`."""
    return cst.Arg(
        keyword=cst.Name(name),
        value=expression(value) if isinstance(value, str) else value,
        equal=cst.AssignEqual(
            whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace("")
        ),
    )


def with_arguments(call: cst.Call, arguments: Sequence[cst.Arg]) -> cst.Call:
    """Return a call with other arguments; its layout stays as far as possible."""
    if list(arguments) == list(call.args):
        return call
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    old_comma = next(
        (one.comma for one in call.args if isinstance(one.comma, cst.Comma)), cst.MaybeSentinel
    )
    if isinstance(old_comma, cst.Comma):
        comma = old_comma
    ends_with_comma = bool(call.args) and isinstance(call.args[-1].comma, cst.Comma)
    made = [
        argument
        if isinstance(argument.comma, cst.Comma) and n + 1 < len(arguments)
        else argument.with_changes(comma=comma)
        for n, argument in enumerate(arguments)
    ]
    if made:
        final = call.args[-1].comma if ends_with_comma else cst.MaybeSentinel.DEFAULT
        made[-1] = made[-1].with_changes(
            comma=final,
            whitespace_after_arg=call.args[-1].whitespace_after_arg
            if call.args
            else cst.SimpleWhitespace(""),
        )
        return call.with_changes(args=made)
    return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))


def argument(call: cst.Call, name: str, position: int | None = None) -> cst.Arg | None:
    """Return an argument by its keyword, or by its position."""
    for found in call.args:
        if found.keyword is not None and found.keyword.value == name:
            return found
    if position is not None and position < len(call.args):
        at = call.args[position]
        if at.keyword is None and not at.star:
            return at
    return None


def every_node(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and everything below it."""
    yield node
    for child in node.children:
        yield from every_node(child)


def own_statements(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return all nodes of a function's body that are not in a nested function or class."""
    found: list[cst.CSTNode] = []
    waiting = list(node.children)
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            continue
        found.append(one)
        waiting = [*one.children, *waiting]
    return found


def waits(function: cst.FunctionDef) -> bool:
    """Whether the body of a function itself awaits anything."""
    return any(
        isinstance(one, cst.Await)
        or (isinstance(one, cst.For | cst.With | cst.CompFor) and one.asynchronous is not None)
        for one in own_statements(function.body)
    )


def parameters(function: cst.FunctionDef) -> list[cst.Param]:
    """Return the parameters of a function, without *args and **kwargs."""
    given = function.params
    return [*given.posonly_params, *given.params, *given.kwonly_params]


def annotation_names(annotation: cst.BaseExpression) -> list[cst.CSTNode]:
    """Return every name in an annotation."""
    return list(m.findall(annotation, m.Name() | m.Attribute()))
