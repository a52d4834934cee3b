"""Replaces the imports of other SDKs by those of Interlock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from .rewriting import marked, replacement
from .syntax import dotted, every_node, last, statements
from .tables import PEERS


def with_imports(module: cst.Module, imports: set[tuple[str, str, str]]) -> tuple[cst.Module, int]:
    """Return a file with the imports that it needs, and without those that it no longer uses.

    Args:
        module: The rewritten file.
        imports: What it needs: module, name, and the name under which the file knows it.

    Returns:
        The file, and the number of imports that stay and are marked.
    """
    used = _used(module)
    needed = {one for one in imports if one[2].split(".")[0] in used}
    present = _present(module)
    at = next((n for n, one in enumerate(module.body) if _imports_peer(one)), None)
    editor = _Imports(used, {one[2] for one in needed})
    changed = module.visit(editor)
    lines = _lines(needed - present)
    if not lines:
        return changed, editor.marks
    body = list(changed.body)
    if at is None:
        at = _start(body)
    made: list[Any] = statements("\n".join(lines) + "\n")
    place: Any = module.body[at] if at < len(module.body) else None
    if isinstance(place, cst.SimpleStatementLine):
        made[0] = made[0].with_changes(leading_lines=place.leading_lines)
        if at < len(body) and body[at].deep_equals(place):
            body[at] = body[at].with_changes(leading_lines=[])
    return changed.with_changes(body=[*body[:at], *made, *body[at:]]), editor.marks


def _imports_peer(statement: Any) -> bool:
    """Whether a statement imports a peer."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for one in statement.body:
        if isinstance(one, cst.ImportFrom) and one.module is not None and not one.relative:
            return dotted(one.module).split(".")[0] in PEERS
        if isinstance(one, cst.Import):
            return any(dotted(alias.name).split(".")[0] in PEERS for alias in one.names)
    return False


def _lines(needed: set[tuple[str, str, str]]) -> list[str]:
    by_module: dict[str, list[str]] = {}
    for module, name, known in needed:
        by_module.setdefault(module, []).append(name if known == name else f"{name} as {known}")
    return [
        _line(module, sorted(by_module[module], key=_rank))
        for module in sorted(by_module, key=lambda one: (one.startswith("interlock"), one))
    ]


def _rank(name: str) -> tuple[int, str]:
    """The order of names in an import: constants, classes, functions."""
    if name.isupper():
        return 0, name
    return (1 if name[0].isupper() else 2), name


def _line(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return line
    return f"from {module} import (\n    " + ",\n    ".join(names) + ",\n)"


def _start(body: Sequence[Any]) -> int:
    """The place of the first import: after the docstring and the imports of `__future__`."""
    at = 0
    for n, one in enumerate(body):
        if not isinstance(one, cst.SimpleStatementLine):
            break
        first = one.body[0]
        is_docstring = n == 0 and isinstance(first, cst.Expr)
        is_future = (
            isinstance(first, cst.ImportFrom)
            and first.module is not None
            and dotted(first.module) == "__future__"
        )
        if not is_docstring and not is_future:
            break
        at = n + 1
    return at


def _used(module: cst.Module) -> set[str]:
    """The names that a file reads, without those of imports, attributes and keywords."""
    used: set[str] = set()
    waiting: list[cst.CSTNode] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Import | cst.ImportFrom):
            continue
        if isinstance(node, cst.Attribute):
            waiting.append(node.value)
            continue
        if isinstance(node, cst.Arg):
            waiting.append(node.value)
            continue
        if isinstance(node, cst.Name):
            used.add(node.value)
        if isinstance(node, cst.SimpleString) and len(node.value) < 80:
            used |= {word for word in node.value.strip("\"'").split("[") if word.isidentifier()}
        waiting += node.children
    return used


def _present(module: cst.Module) -> set[tuple[str, str, str]]:
    """What the file imports already."""
    return {
        (dotted(node.module), dotted(alias.name), _known(alias))
        for node in every_node(module)
        if isinstance(node, cst.ImportFrom)
        and node.module is not None
        and not node.relative
        and not isinstance(node.names, cst.ImportStar)
        for alias in node.names
    }


def _known(alias: cst.ImportAlias) -> str:
    if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
        return alias.asname.name.value
    return dotted(alias.name)


class _Imports(cst.CSTTransformer):
    """Removes what is not used any more, and marks what stays."""

    def __init__(self, used: set[str], replaced: set[str]) -> None:
        super().__init__()
        self.marks = 0
        self._used = used
        self._replaced = replaced
        self._words: list[str] = []

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        """Keep the names that are still used."""
        if original_node.relative or original_node.module is None:
            return updated_node
        source = dotted(original_node.module)
        if source.split(".")[0] not in PEERS:
            return updated_node
        if isinstance(updated_node.names, cst.ImportStar):
            self._words.append(f"the names of {source} are not known: import what you use")
            return updated_node
        kept = []
        for alias in updated_node.names:
            known = _known(alias)
            if known not in self._used or known in self._replaced:
                continue
            change = replacement(f"{source}.{dotted(alias.name)}")
            why = (
                change.mark
                if change is not None and change.mark
                else (f"Interlock has nothing of this name from {source}")
            )
            self._words.append(f"{last(dotted(alias.name))}: {why}")
            kept.append(alias)
        if not kept:
            return cst.RemoveFromParent()
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(names=kept)

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import | cst.RemovalSentinel:
        """Keep the modules that are still used."""
        kept = []
        for alias in updated_node.names:
            source = dotted(alias.name)
            if source.split(".")[0] in PEERS:
                known = _known(alias).split(".")[0]
                if known not in self._used or _known(alias) in self._replaced:
                    continue
                if known in PEERS and known in self._replaced:
                    continue
                self._words.append(f"{source}: what is used of it has no replacement")
            kept.append(alias)
        if not kept:
            return cst.RemoveFromParent()
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(names=kept)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        """Begin a statement."""
        self._words = []

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """Mark a statement that stays, and remove one that has become empty."""
        if not updated_node.body:
            return cst.RemoveFromParent()
        if self._words:
            self.marks += len(set(self._words))
            return marked(updated_node, list(dict.fromkeys(self._words)))
        return updated_node
