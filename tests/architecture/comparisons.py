"""Revisions are not compared above `protocol/`: code checks a feature of a revision by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import Source, SourceTree

FREE = {"wire", "protocol"}
"""The packages that know the history of the protocol."""

_DATE = re.compile(r"20\d\d-\d\d-\d\d")
_NAME = re.compile(r"R[1-5]|NEWEST|OLDEST|LAST_HANDSHAKE|(HANDSHAKE|STATELESS)_REVISIONS")
_WORDS = "compares revisions; ask by name: `supports(revision, ...)` or `caller.supports(...)`"


def problems(source_tree: SourceTree) -> Iterator[str]:
    """Every comparison of a revision outside `wire` and `protocol`, one line each."""
    for source in source_tree.sources:
        if source.top_package not in FREE:
            yield from _comparisons(source)


def _comparisons(source: Source) -> Iterator[str]:
    for node, _ in source.nodes:
        if isinstance(node, ast.Compare) and _compares_revisions(node):
            yield f"{source.where}:{node.lineno}: {_WORDS}"


def _compares_revisions(node: ast.Compare) -> bool:
    operands = [node.left, *node.comparators]
    if any(_is_a_revision(operand) for operand in operands):
        return True
    ordered = any(isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for sign in node.ops)
    return ordered and any(_is_called_revision(operand) for operand in operands)


def _is_a_revision(node: ast.expr) -> bool:
    """Whether this is one of the five, by its date or by its name."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _DATE.fullmatch(node.value) is not None
    name = _last_name(node)
    return name is not None and _NAME.fullmatch(name) is not None


def _is_called_revision(node: ast.expr) -> bool:
    name = _last_name(node)
    return name is not None and name in ("revision", "protocol_version")


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
