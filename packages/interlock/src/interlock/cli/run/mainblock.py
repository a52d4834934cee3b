"""Finds a server that a file sets up under `if __name__ == "__main__":`, which is not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_HARMLESS = frozenset({"run", "close"})


def advice(path: Path) -> str:
    """What to do about a server that is set up in the main block of its file; empty if there is
    none.

    As far as the source shows, a server is set up if the block, or a function that it calls,
    assigns to an attribute of an object that the module defines, calls a method of it other than to
    run it, or assigns to a global name.

    Args:
        path: A Python file.
    """
    names = sorted(set(_set_up(path)))
    if not names:
        return ""
    return (
        f"{path.name} sets up {', '.join(names)} under `if __name__ == '__main__':`, "
        "which `interlock run` and the hosts that `interlock install` configures do not "
        "run. Do this where the server is created, or start the file itself: -- python "
        f"{path}"
    )


def _set_up(path: Path) -> Iterator[str]:
    """The names of the objects that the main block sets up."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    block = [each for each in tree.body if isinstance(each, ast.If) and _is_main(each.test)]
    functions = {
        each.name: each
        for each in tree.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    defined = set(_defined(tree))
    bodies: list[ast.stmt] = [statement for each in block for statement in each.body]
    seen: set[str] = set()
    while bodies:
        statement = bodies.pop()
        for node in ast.walk(statement):
            yield from _touched(node, defined)
            if isinstance(node, ast.Name) and node.id in functions and node.id not in seen:
                seen.add(node.id)
                bodies += functions[node.id].body


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(each, ast.Name) and each.id == "__name__"
        for each in (test.left, *test.comparators)
    )


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that the module itself assigns."""
    for statement in tree.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _touched(node: ast.AST, defined: set[str]) -> Iterator[str]:
    """The names of the module's objects that a node sets up."""
    if isinstance(node, ast.Global):
        yield from (name for name in node.names if name in defined)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (
            root
            for target in targets
            if isinstance(target, ast.Attribute | ast.Subscript)
            and (root := _root(target)) in defined
        )
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr not in _HARMLESS
        and (root := _root(node.value.func)) in defined
    ):
        yield root


def _root(node: ast.expr) -> str:
    """The name at the beginning of `a.b[c].d`; empty if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
