"""The requirements list: reads `docs/requirements.txt`, finds the tests that name each ID, and
writes `docs/requirements.md`.

A row of the list may end with `[not ours: why]`: it applies to other parties, or it is an option
that we do not use.

python scripts/requirements.py            # write docs/requirements.md
python scripts/requirements.py --missing  # list the IDs of ours that no test names
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (ROOT / "tests", *sorted(ROOT.glob("packages/*/tests")))
LIST = ROOT / "docs" / "requirements.txt"
PAGE = ROOT / "docs" / "requirements.md"
ID = re.compile(r"\b(?:[A-Z]{3}|AU[123]|TK[A-Z0-9]|X)-\d{2}\b")
TESTS_OF_THE_LIST = "test_requirements.py"
"""The tests of this script, whose IDs are examples."""
NOT_IDS = {"UTF-16", "UTF-32", "UTC-03"}
"""Words that look like an ID but are not."""

_ROW = re.compile(r"(?P<id>[A-Z0-9]{1,3}-\d{2}) \| (?P<rest>.+)")
_NOTE = re.compile(r"(?:[-*] )?\**(?P<id>X-\d{2})\b\**[ .:|—-]*(?P<text>.+)")
_NOT_OURS = re.compile(r"\s*\[not ours: (?P<why>[^\]]+)\]\s*$")
_COVERAGE = re.compile(r"\s*\[(?:no-conf|schema|conf|unscored)[^\]]*\]\s*$")


@dataclass(frozen=True)
class Requirement:
    """One line of the list.

    Attributes:
        id: Its name, such as RPC-01.
        revisions: The revisions that have it, as the list abbreviates them.
        role: The role that has to meet it.
        level: MUST, SHOULD or MAY.
        text: The requirement, in our words.
        section: The heading of its section in the list.
        not_ours: Why our code does not have to meet it; empty if it has to.
    """

    id: str
    revisions: str
    role: str
    level: str
    text: str
    section: str
    not_ours: str = ""


def requirements(text: str) -> list[Requirement]:
    """Read the list.

    Raises:
        ValueError: An ID occurs twice.
    """
    found: dict[str, Requirement] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip()
        one = _requirement(line, section)
        if one is None:
            continue
        if one.id in found:
            raise ValueError(f"{one.id} stands twice in the list")
        found[one.id] = one
    return list(found.values())


def _requirement(line: str, section: str) -> Requirement | None:
    excuse = _NOT_OURS.search(line)
    why = excuse["why"].strip() if excuse is not None else ""
    line = _NOT_OURS.sub("", line)
    row = _ROW.fullmatch(line.strip())
    if row is not None:
        fields = [field.strip() for field in row["rest"].split(" | ", 3)]
        if len(fields) == 4:
            revisions, role, level, words = fields
            words = _COVERAGE.sub("", words)
            return Requirement(row["id"], revisions, role, level, words, section, why)
    note = _NOTE.match(line.strip())
    if note is not None:
        return Requirement(note["id"], "", "", "note", note["text"].strip(), section, why)
    return None


def named(*folders: Path) -> dict[str, list[str]]:
    """The tests that name each ID, as `file::function`, or as `file` for a table outside a
    function."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for id, place in _named_in(path):
            found[id].add(place)
    return {id: sorted(tests) for id, tests in found.items()}


@cache
def _named_in(path: Path) -> tuple[tuple[str, str], ...]:
    """Each ID that a file names, with the place."""
    text = path.read_text(encoding="utf-8")
    if path.name == TESTS_OF_THE_LIST or not ID.search(text):
        return ()
    places = _functions(ast.parse(text))
    where = _shown(path)
    return tuple(
        (id, f"{where}::{places[number]}" if number in places else where)
        for number, line in enumerate(text.splitlines(), 1)
        for id in set(ID.findall(line)) - NOT_IDS
    )


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def _functions(tree: ast.Module) -> Mapping[int, str]:
    """The outermost function at each line, with its decorators."""
    lines: dict[int, str] = {}
    for node in _outermost(tree):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for line in range(first, (node.end_lineno or node.lineno) + 1):
            lines[line] = node.name
    return lines


def _outermost(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _outermost(child)


def page(rows: list[Requirement], tests: Mapping[str, list[str]]) -> str:
    """The page as Markdown."""
    shown = sum(1 for row in rows if row.id in tests)
    others = [row for row in rows if row.not_ours]
    lines = [
        "# Requirements and the tests that show them",
        "",
        "Made by `python scripts/requirements.py` from `docs/requirements.txt` and the tests;"
        " a test checks that it is current.",
        "R1 is 2024-11-05, R2 2025-03-26, R3 2025-06-18, R4 2025-11-25, R5 2026-07-28."
        " The specification's own text decides.",
        "",
        f"{shown} of {len(rows)} requirements are named by at least one test."
        f" {len(others)} are not ours: they are listed at the end, each with the reason.",
    ]
    section = None
    for row in rows:
        if row.section != section:
            section = row.section
            lines += ["", f"## {section}", "", "| ID | revisions | level | requirement | tests |"]
            lines += ["|---|---|---|---|---|"]
        lines.append(_line(row, tests.get(row.id, [])))
    lines += ["", "## Not ours", "", "| ID | role | level | requirement | why not ours |"]
    lines += ["|---|---|---|---|---|"]
    lines += [
        f"| {row.id} | {row.role} | {row.level} | {_cell(row.text)} | {_cell(row.not_ours)} |"
        for row in others
    ]
    return "\n".join(lines) + "\n"


def _line(row: Requirement, tests: list[str]) -> str:
    shown = "<br>".join(f"`{test}`" for test in tests[:3])
    if len(tests) > 3:
        shown += f"<br>and {len(tests) - 3} more"
    nobody = "not ours" if row.not_ours else "none"
    return f"| {row.id} | {row.revisions} | {row.level} | {_cell(row.text)} | {shown or nobody} |"


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return text.replace("|", "\\|")


def missing(rows: Iterable[Requirement], tests: Mapping[str, list[str]]) -> list[Requirement]:
    """Our requirements that no test names."""
    return [row for row in rows if row.id not in tests and not row.not_ours]


def contradictions(rows: Iterable[Requirement], tests: Mapping[str, list[str]]) -> list[str]:
    """The IDs that a test names although the list marks them as not ours."""
    return [row.id for row in rows if row.not_ours and row.id in tests]


def main(arguments: list[str]) -> int:
    """Write the page, or list the IDs that no test names; return the exit code."""
    rows = requirements(LIST.read_text(encoding="utf-8"))
    tests = named(*TESTS)
    if "--missing" in arguments:
        for row in missing(rows, tests):
            print(f"{row.id} | {row.section} | {row.level} | {row.text}")
        return 0
    PAGE.write_text(page(rows, tests), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
