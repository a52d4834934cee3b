"""The requirements page is current, and every requirement ID that a test or a source file names is
in the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import requirements

ROOT = Path(__file__).parents[2]

LINES = {
    "a requirement": (
        "RPC-01 | all | both | MUST | Say it. [schema]",
        [("RPC-01", "all", "MUST", "Say it.")],
    ),
    "a text with the separator": (
        "ERR-01 | R5 | server | MAY | a | b [no-conf]",
        [("ERR-01", "R5", "MAY", "a | b")],
    ),
    "prose": ("The list has 795 lines.", []),
}


@pytest.mark.parametrize("line, rows", LINES.values(), ids=LINES)
def test_a_line_of_the_list_is_read(line: str, rows: list[tuple[str, ...]]) -> None:
    """Its ID, revisions, level and text, without the note on the coverage by the public suite."""
    found = requirements.requirements(f"## 1. Base\n\n{line}\n")
    assert [(row.id, row.revisions, row.level, row.text) for row in found] == rows


def test_an_id_stands_once() -> None:
    """Two requirements with one ID would be ambiguous."""
    line = "RPC-01 | all | both | MUST | Say it."
    with pytest.raises(ValueError, match="RPC-01 stands twice"):
        requirements.requirements(f"{line}\n{line}\n")


def test_a_requirement_that_is_not_ours_needs_no_test() -> None:
    """Its reason is on the page, and it does not count as missing; our own requirement without a
    test does."""
    rows = requirements.requirements(
        "## 1. Base\n"
        "RPC-01 | all | both | MUST | Say it. [schema]\n"
        "RPC-02 | all | user | MUST | Look [at] it. [no-conf] [not ours: users look | they do]\n"
        "RPC-03 | all | both | MUST | Keep it.\n"
    )
    assert [(row.text, row.not_ours) for row in rows] == [
        ("Say it.", ""),
        ("Look [at] it.", "users look | they do"),
        ("Keep it.", ""),
    ]
    tests = {"RPC-01": ["tests/a.py::b"]}
    assert [row.id for row in requirements.missing(rows, tests)] == ["RPC-03"]
    page = requirements.page(rows, tests)
    assert "1 of 3 requirements are named by at least one test. 1 are not ours" in page
    assert page.endswith("| RPC-02 | user | MUST | Look [at] it. | users look \\| they do |\n")
    assert requirements.contradictions(rows, tests | {"RPC-02": ["x"]}) == ["RPC-02"]


def test_no_test_shows_what_is_not_ours() -> None:
    """A reason that a test contradicts is wrong, or the test names the wrong requirement."""
    rows = requirements.requirements(requirements.LIST.read_text("utf-8"))
    assert requirements.contradictions(rows, requirements.named(*requirements.TESTS)) == []


@pytest.mark.parametrize("folder", ["tests", "packages"])
def test_every_id_that_is_named_is_in_the_list(folder: str) -> None:
    """A reference to an unknown ID would be useless to a reader."""
    known = {row.id for row in requirements.requirements(requirements.LIST.read_text("utf-8"))}
    texts = {
        path: path.read_text("utf-8")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != requirements.TESTS_OF_THE_LIST
    }
    unknown = [
        f"{id} in {path}"
        for path, text in texts.items()
        for id in set(requirements.ID.findall(text)) - requirements.NOT_IDS - known
    ]
    assert not unknown


def test_the_page_is_current() -> None:
    """`python scripts/requirements.py` writes it."""
    rows = requirements.requirements(requirements.LIST.read_text("utf-8"))
    page = requirements.page(rows, requirements.named(*requirements.TESTS))
    assert requirements.PAGE.read_text("utf-8") == page
