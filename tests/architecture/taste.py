"""Code style: rules for files, functions and names that a machine can check."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.architecture.source import Source, SourceTree, absolute

NOT_IN_A_CLASS_NAME = {"Manager", "Helper", "Util", "Base", "Common", "Impl"}
NOT_A_FILE_NAME = {"manager", "helper", "util", "common", "impl", "misc"}

# Modules of the optional extras. Their imports inside a function need no reason.
EXTRAS = {
    "argon2",
    "click",
    "cryptography",
    "httpx2",
    "joserfc",
    "keyring",
    "pydantic",
    "rich",
    "ruamel",
    "tomlkit",
    "uvloop",
    "watchfiles",
}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_WAIVER = re.compile(r"(noqa|type: ignore|pragma|pyright|fmt|mypy|ruff)\b")
_EXCUSE = re.compile(
    r"^(?:noqa(?::\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)?|type:\s*ignore(?:\[[\w, -]*\])?)"
)
_SUSPECT = re.compile(r"noqa|type:\s*ignore")
# codes, then other checks that are silenced on the same line, then the reason
_BARE_IGNORE = re.compile(
    r"#\s*type:\s*ignore\b(?!\[[\w, -]+\](\s+# noqa: [A-Z0-9, ]+)?\s+# (?!noqa)\w)"
)
_UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")


def problems(source_tree: SourceTree) -> Iterator[str]:
    """Every violation of the style in the package, one line each."""
    for source in source_tree.sources:
        yield from opening(source.tree, source.where)
        yield from _names(source)
        yield from _imports_inside_functions(source_tree, source)
        yield from _excuses(source)
        yield from nested_conditionals((node for node, _ in source.nodes), source.where)
        yield from parallel_assignments((node for node, _ in source.nodes), source.where)


def opening(tree: ast.Module, where: str) -> Iterator[str]:
    """A file opens with a docstring whose first paragraph is a sentence."""
    first = (ast.get_docstring(tree) or "").split("\n\n")[0].strip()
    if not first:
        yield f"{where}: does not open with a docstring"
    elif not first.endswith((".", "!", "?", ":")) or " " not in first:
        yield f"{where}: its docstring does not open with a sentence"


def openings(folder: Path) -> Iterator[str]:
    """The same for every file below ``folder``, for folders without other rules: tests, scripts,
    benchmarks."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if text.startswith('"""'):
            text = '"""'.join([*text.split('"""', 2)[:2], ""])  # the rest need not be parsed
        yield from opening(ast.parse(text), path.relative_to(folder.parent).as_posix())


def bare_ignores(folder: Path) -> Iterator[str]:
    """Every `type: ignore` below `folder` without its codes and, in a comment after it, a reason.

    A reason in the line above would move away from its line when the code is edited.
    """
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "ignore" not in text:
            continue
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = (token for token in tokens if token.type == tokenize.COMMENT)
        for comment in comments:
            if _BARE_IGNORE.match(comment.string):
                where = path.relative_to(folder.parent).as_posix()
                yield f"{where}:{comment.start[0]}: no reason after {comment.string}"


def nested_conditionals(nodes: Iterable[ast.AST], where: str) -> Iterator[str]:
    """A conditional expression is not a branch, nor the condition, of another one."""
    for node in nodes:
        if isinstance(node, ast.IfExp) and any(
            isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)
        ):
            yield f"{where}:{node.lineno}: a conditional expression within another one"


def parallel_assignments(nodes: Iterable[ast.AST], where: str) -> Iterator[str]:
    """Independent values are assigned on separate lines.

    An assignment that reads a name or attribute that it also sets, such as a swap, is allowed.
    """
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        for target in node.targets:
            if not isinstance(target, ast.Tuple):
                continue
            written = {ast.unparse(part) for part in target.elts}
            read = {
                ast.unparse(part)
                for part in ast.walk(node.value)
                if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)
            }
            if not written & read:
                yield f"{where}:{node.lineno}: several values are assigned in one statement"


def _names(source: Source) -> Iterator[str]:
    if (stem := source.path.stem.strip("_")).removesuffix("s") in NOT_A_FILE_NAME:
        yield f"{source.where}: {stem} says nothing about what is in the file"
    for node, _ in source.nodes:
        if isinstance(node, ast.ClassDef):
            for word in _WORD.findall(node.name):
                if word.removesuffix("s") in NOT_IN_A_CLASS_NAME:
                    yield (
                        f"{source.where}:{node.lineno}: class {node.name} is called {word}: "
                        "name it by what it is"
                    )


def _imports_inside_functions(source_tree: SourceTree, source: Source) -> Iterator[str]:
    """An import inside a function is for an optional extra, or a comment beside it or just above
    says why."""
    excused: set[int] = (
        set()
    )  # last lines of the imports with a reason: one comment applies to the imports right below it
    nodes = [
        node
        for node, inside in source.nodes
        if inside and isinstance(node, ast.Import | ast.ImportFrom)
    ]
    for node in sorted(nodes, key=lambda node: node.lineno):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [absolute(source, node)]
        )
        last = node.end_lineno or node.lineno
        reasons = (source.comments.get(line, "") for line in range(node.lineno - 1, last + 1))
        if node.lineno - 1 in excused or any(_says_why(reason) for reason in reasons):
            excused.add(last)
        elif not all(name.partition(".")[0] in EXTRAS for name in names):
            yield (
                f"{source.where}:{node.lineno}: imports {', '.join(names)} inside a function "
                "and does not say why"
            )


def _says_why(comment: str) -> bool:
    return not _WAIVER.match(comment) and len(comment.split()) >= 3


def _excuses(source: Source) -> Iterator[str]:
    """The code contains no unfinished parts, and a silenced check has its reason beside it or just
    above."""
    if not _SUSPECT.search(source.text) and not _UNFINISHED.search(source.text):
        return  # to find the comments of a file is slow
    for line, comment in source.comments.items():
        if _UNFINISHED.search(comment):
            yield f"{source.where}:{line}: something is left unfinished: {comment}"
        elif waiver := _EXCUSE.match(comment):
            reason = comment[waiver.end() :].strip(" #-:,")
            if not _says_why(reason) and not _says_why(source.comments.get(line - 1, "")):
                yield f"{source.where}:{line}: silences a check and does not say why"
