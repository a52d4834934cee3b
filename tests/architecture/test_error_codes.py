"""The error codes in our source: those that the specification defines, and no others in the
reserved ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from interlock import types as t
from interlock.wire.revisions import ERRORS
from tests.architecture.source import SourceTree

JSON_RPC = {-32700, -32600, -32601, -32602, -32603}
DEFINED = {
    -32020: "HEADER_MISMATCH",
    -32021: "MISSING_CLIENT_CAPABILITY",
    -32022: "UNSUPPORTED_PROTOCOL_VERSION",
}
GIVEN_UP = {-32002: "RESOURCE_NOT_FOUND", -32042: "URL_ELICITATION_REQUIRED"}
RESERVED = range(-32768, -31999)


def reserved_numbers(nodes: Iterable[ast.AST]) -> set[int]:
    """The numbers in a program that JSON-RPC reserves for error codes."""
    return {
        -node.operand.value
        for node in nodes
        if isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
        and -node.operand.value in RESERVED
    }


def test_numbers_are_found() -> None:
    """Reserved numbers are found everywhere, and no others."""
    tree = ast.parse("a = -32050\nraise E(-32001, 32002, -31999, -1)")
    assert reserved_numbers(ast.walk(tree)) == {-32050, -32001}


def test_the_source_mints_no_code(source_tree: SourceTree) -> None:
    """Every reserved code in our source is defined in the specification (`ERR-02`, `ERR-03`,
    `ERR-04`, `ERR-06`)."""
    allowed = JSON_RPC | set(DEFINED) | set(GIVEN_UP)
    found = {
        source.where: extra
        for source in source_tree.sources
        if (extra := reserved_numbers(node for node, _ in source.nodes) - allowed)
    }
    # The one place that knows the range: it prevents sending such codes.
    assert found == {"interlock/protocol/error_codes.py": {-32099, -32019}}


def test_named_codes_have_their_meaning() -> None:
    """The names of the specification belong to its numbers (`ERR-02`)."""
    for code, name in (DEFINED | GIVEN_UP).items():
        assert getattr(t, name) == code


def test_the_newest_revision_has_no_code_that_was_given_up() -> None:
    """The newest revision uses none of the legacy codes (`ERR-04`,
    `ERR-12`)."""
    newest = {codes[max(codes)] for codes in ERRORS.values()}
    assert newest <= JSON_RPC | set(DEFINED)
    assert t.FORBIDDEN not in RESERVED  # our own: `ERR-06`
