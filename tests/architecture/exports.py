"""The names in ``__all__`` of a public module: each one is defined, and documented at its
definition."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source import Source, SourceTree, absolute


def problems(source_tree: SourceTree) -> Iterator[str]:
    """Every name in an ``__all__`` of a public module without a definition or a docstring, one line
    each."""
    for source in source_tree.sources:
        if any(part.startswith("_") for part in source.name.split(".")):
            continue
        listed = _exported(source)
        if listed is None:
            yield f"{source.where}: its __all__ is not a plain list of names"
            continue
        for name in sorted({name for name in listed if listed.count(name) > 1}):
            yield f"{source.where}: exports {name} twice"
        for name in dict.fromkeys(listed):
            if trouble := _trouble(source_tree, source, name, set()):
                yield f"{source.where}: exports {name}, {trouble}"


def _exported(source: Source) -> list[str] | None:
    """The names in ``__all__``; empty without such a list, ``None`` if it cannot be parsed."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                try:
                    names = list(ast.literal_eval(node.value)) if node.value is not None else []
                except ValueError:
                    return None
                return (
                    names
                    if not isinstance(node, ast.AugAssign)
                    and all(isinstance(name, str) for name in names)
                    else None
                )
    return []


def _trouble(source_tree: SourceTree, source: Source, name: str, seen: set[tuple[str, str]]) -> str:
    """The problem of ``name`` in ``source``; empty if there is none."""
    if (source.name, name) in seen:
        return "which nobody defines"
    seen.add((source.name, name))
    if source_tree.has(f"{source.name}.{name}"):
        return ""  # a module, and a module has its docstring
    explained = [
        _explained(source_tree, source, body, index, name, seen)
        for body, index in _statements(source.tree.body)
    ]
    found = [answer for answer in explained if answer is not None]
    if not found:
        return "which nobody defines"
    return "" if "" in found else found[0]


def _statements(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """The statements of a module, including those under conditions, each with its block."""
    for index, node in enumerate(body):
        yield body, index
        if isinstance(node, ast.If | ast.Try | ast.With):
            for block in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                yield from _statements(block)
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _explained(
    source_tree: SourceTree,
    source: Source,
    body: list[ast.stmt],
    index: int,
    name: str,
    seen: set[tuple[str, str]],
) -> str | None:
    """``None`` if the statement does not define ``name``, else the problem of the definition."""
    node = body[index]
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name != name:
            return None
        return (
            ""
            if ast.get_docstring(node)
            else f"which has no docstring ({source.where}:{node.lineno})"
        )
    if isinstance(node, ast.ImportFrom):
        return _imported(source_tree, source, node, name, seen)
    if isinstance(node, ast.Import):
        return "" if any((alias.asname or alias.name) == name for alias in node.names) else None
    if name not in _assigned(node):
        return None
    if _words(source, body, index):
        return ""
    return (
        "which has neither a docstring below nor a comment beside it "
        f"({source.where}:{node.lineno})"
    )


def _words(source: Source, body: list[ast.stmt], index: int) -> bool:
    """Whether an assignment has a comment or a docstring.

    One above the first or below the last assignment of a block applies to the whole block.
    """
    first = last = index
    while first and _assigned(body[first - 1]) and _adjoin(body[first - 1], body[first]):
        first -= 1
    while (
        last + 1 < len(body) and _assigned(body[last + 1]) and _adjoin(body[last], body[last + 1])
    ):
        last += 1
    after = body[last + 1] if last + 1 < len(body) else None
    if (
        isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    ):
        return True
    node = body[index]
    return any(
        line in source.comments
        for line in (
            body[first].lineno - 1,
            *range(node.lineno, (node.end_lineno or node.lineno) + 1),
        )
    )


def _adjoin(one: ast.stmt, other: ast.stmt) -> bool:
    return other.lineno - (one.end_lineno or one.lineno) == 1


def _assigned(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        targets = []
    if hasattr(ast, "TypeAlias") and isinstance(node, ast.TypeAlias):
        targets = [node.name]
    return {
        leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)
    }


def _imported(
    source_tree: SourceTree,
    source: Source,
    node: ast.ImportFrom,
    name: str,
    seen: set[tuple[str, str]],
) -> str | None:
    base = absolute(source, node)
    origin = source_tree.modules.get(base)
    for alias in node.names:
        if alias.name == "*" and origin:
            trouble = _trouble(source_tree, origin, name, seen)
            if "nobody defines" not in trouble:
                return trouble
        elif (alias.asname or alias.name) == name:
            if source_tree.has(f"{base}.{alias.name}") or base.partition(".")[0] != "interlock":
                # a module with its docstring, or a third-party name with its own docstring
                return ""
            return (
                _trouble(source_tree, origin, alias.name, seen)
                if origin
                else "which nobody defines"
            )
    return None
