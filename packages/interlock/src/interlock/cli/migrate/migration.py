"""Migrates a project: reads its files, rewrites them together, and says what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper
from msgspec import Struct

from .blocking import Blocking
from .clients import Clients
from .imports import with_imports
from .low_level import LowLevel
from .rewriting import Rewriter
from .survey import FileSurvey, share, survey
from .tables import MARK, PEERS

_FOLDERS = frozenset({"node_modules", "build", "dist", "site-packages", "__pycache__"})


class Migrated(Struct, frozen=True):
    """A file before and after.

    Attributes:
        before: Its text.
        after: Its new text.
        marks: The lines of the marks that it has now, each with its number.
    """

    before: str
    after: str
    marks: list[tuple[int, str]]


class NotUtf8(Exception):
    """A file is in another encoding. The text says which file."""


def files_of(path: Path) -> list[Path]:
    """Return a Python file, or the Python files below a folder, without environments and builds."""
    if path.is_file():
        return [path]
    return sorted(
        one
        for one in path.rglob("*.py")
        if not any(
            part in _FOLDERS or part.startswith((".", "venv"))
            for part in one.relative_to(path).parts
        )
    )


def read(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the text of the files that name one of the other SDKs.

    Raises:
        NotUtf8: Such a file is not in UTF-8.
        OSError: A file cannot be read.
    """
    found = {}
    for path in paths:
        data = path.read_bytes()
        if not any(name.encode() in data for name in PEERS):
            continue
        try:
            found[path] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise NotUtf8(f"{path} is not in UTF-8: save it as UTF-8 first") from None
    return found


def migrate(sources: Mapping[Path, str]) -> dict[Path, Migrated]:
    """Rewrite files that belong together.

    Args:
        sources: The text of each file.

    Returns:
        The files that change.

    Raises:
        libcst.ParserSyntaxError: A file is not valid Python.
    """
    modules = {
        path: cst.parse_module(text)
        for path, text in sources.items()
        if any(name in text for name in PEERS)
    }
    found = {path: survey(module) for path, module in modules.items()}
    share(found, modules)
    made: dict[Path, cst.Module] = {}
    imports: dict[Path, set[tuple[str, str, str]]] = {}
    blocking: set[str] = set()
    for path, module in modules.items():
        made[path], imports[path], runs = _rewritten(module, found[path])
        blocking |= runs
    _unblock(made, blocking)
    changed = {}
    for path, module in made.items():
        whole, _ = with_imports(module, imports[path])
        after = whole.code
        if after != sources[path]:
            changed[path] = Migrated(sources[path], after, _marks(after))
    return changed


def _rewritten(
    module: cst.Module, found: FileSurvey
) -> tuple[cst.Module, set[tuple[str, str, str]], set[str]]:
    """One file in three passes: low-level servers, clients, and all else."""
    imports: set[tuple[str, str, str]] = set()
    blocking: set[str] = set()
    kinds: list[Any] = [Rewriter]
    if "Client" in module.code or found.clients:
        kinds.insert(0, Clients)
    if found.low:
        kinds.insert(0, LowLevel)
    for n, kind in enumerate(kinds):
        transformer: Any = kind(found)
        # a parsed tree has no node twice, which a rewritten one may have
        module = MetadataWrapper(module, unsafe_skip_copy=n == 0).visit(transformer)
        imports |= transformer.imports
        blocking |= getattr(transformer, "blocking", set())
    return module, imports, blocking


def _unblock(modules: dict[Path, cst.Module], blocking: set[str]) -> None:
    """Make functions plain that run a server, and those that only await these."""
    known: set[str] = set()
    while blocking - known:
        known |= blocking
        for path, module in modules.items():
            transformer = Blocking(blocking)
            modules[path] = MetadataWrapper(module).visit(transformer)
            blocking = blocking | transformer.plain


def _marks(text: str) -> list[tuple[int, str]]:
    lines = text.splitlines()
    found = []
    for n, line in enumerate(lines):
        words = line.strip()
        if not words.startswith(MARK):
            continue
        rest = n + 1
        words = words.removeprefix(MARK)
        while rest < len(lines) and lines[rest].strip().startswith("#   "):
            words += " " + lines[rest].strip().removeprefix("#").strip()
            rest += 1
        found.append((n + 1, words))
    return found
