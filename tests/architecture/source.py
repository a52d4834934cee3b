"""The source for the checkers: every module is parsed once, with its imports resolved to full
names."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MODULE_IN_TEXT = re.compile(r"(interlock\w*)?(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True)
class Import:
    """One imported module: its full dotted name, its place, and whether it is inside a function."""

    target: str
    line: int
    inside: bool


class Source:
    """One Python file of the package: its dotted name, text, tree and comments."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.where = path.relative_to(root).as_posix()
        parts = list(path.relative_to(root).with_suffix("").parts)
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @property
    def top_package(self) -> str:
        """The first name below the package; the package itself stands for the public API."""
        return top_package(self.name)

    @property
    def package(self) -> str:
        """The package at which a relative import in this file starts."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, bool]]:
        """Every node, and whether it is in the body of a function."""
        return list(_walk(self.tree, False))

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comment on each line that has one, without the `#`."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {
            token.start[0]: token.string.lstrip("#").strip()
            for token in tokens
            if token.type == tokenize.COMMENT
        }


class SourceTree:
    """All modules below ``root/interlock``."""

    def __init__(self, *roots: Path) -> None:
        self.sources = [
            Source(path, root) for root in roots for path in sorted(root.glob("interlock*/**/*.py"))
        ]
        self.modules = {source.name: source for source in self.sources}
        self._packages = {parent for name in self.modules for parent in _parents(name)}
        self._imports: dict[Source, tuple[Import, ...]] = {}

    def has(self, name: str) -> bool:
        """Whether ``name`` is a module or a folder of the source."""
        return name in self.modules or name in self._packages

    def imports(self, source: Source) -> tuple[Import, ...]:
        """Every import of a file, also under ``TYPE_CHECKING``, inside functions, and by name at
        run time."""
        if source not in self._imports:
            self._imports[source] = (*self._written(source), *self._named_in_text(source))
        return self._imports[source]

    def _written(self, source: Source) -> Iterator[Import]:
        for node, inside in source.nodes:
            if isinstance(node, ast.Import):
                yield from (Import(alias.name, node.lineno, inside) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = absolute(source, node)
                for alias in node.names:
                    deeper = f"{base}.{alias.name}"
                    yield Import(deeper if self.has(deeper) else base, node.lineno, inside)

    def _named_in_text(self, source: Source) -> Iterator[Import]:
        """In a file that imports at run time, each string that is the name of a module counts as an
        import of it."""
        if not any(
            isinstance(node, ast.Call) and _imports_at_run_time(node) for node, _ in source.nodes
        ):
            return
        for node, inside in source.nodes:
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and _MODULE_IN_TEXT.fullmatch(node.value)
            ):
                name = source.package + node.value if node.value.startswith(".") else node.value
                if self.has(name):
                    yield Import(name, node.lineno, inside)


def top_package(name: str) -> str:
    """The top package of a dotted name: ``interlock.wire.codec`` to ``wire``, ``interlock`` itself
    to ``interlock``."""
    first, _, rest = name.partition(".")
    if rest.startswith(("auth.issuer", "auth.proxy", "auth.presets", "auth.providers")):
        return "issuer"  # a distribution of its own
    return rest.partition(".")[0] or first


def absolute(source: Source, node: ast.ImportFrom) -> str:
    """The full name of the module that ``from ... import`` names."""
    if not node.level:
        return node.module or ""
    base = source.package.split(".")
    base = base[: len(base) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _walk(tree: ast.AST, inside: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every node in source order, and whether it is in the body of a function.

    Contexts, such as `ast.Load`, are left out: they are a third of all nodes and say nothing.
    """
    left = [(tree, inside)]
    while left:
        parent, inside = left.pop()
        if parent is not tree:
            yield parent, inside
        inside = inside or isinstance(parent, FUNCTIONS)
        for field in reversed(parent._fields):
            value = getattr(parent, field, None)
            if isinstance(value, list):
                left.extend(
                    (child, inside) for child in reversed(value) if isinstance(child, ast.AST)
                )
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                left.append((value, inside))


def _imports_at_run_time(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        called = call.func.attr
    elif isinstance(call.func, ast.Name):
        called = call.func.id
    else:
        called = ""
    return called in {"import_module", "__import__"}


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name
