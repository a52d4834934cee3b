"""The tables of the migration pages are those of the migrator.

python -m tests.docs.test_migrate_page    # write the tables into docs/guide/migrate-*.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

import interlock
from interlock import types
from interlock.cli.migrate import tables
from tests.docs.pages import TOP

GUIDE = TOP / "docs" / "guide"
PAGES = {
    GUIDE / "migrate-official.md": tables.ONLY_FASTMCP,
    GUIDE / "migrate-fastmcp.md": tables.ONLY_OFFICIAL,
}
"""The pages, each with the names that it leaves out."""
BEGIN = "<!-- the tables of the migrator begin -->\n"
END = "<!-- the tables of the migrator end -->"
TABLES: dict[str, Mapping[str, tables.Respelling]] = {
    "Names": tables.NAMES,
    "Options of servers": tables.SERVER_OPTIONS,
    "Options of `run` and of apps": tables.RUN_OPTIONS,
    "Options of tools, prompts and resources": tables.TOOL_OPTIONS,
    "The context": tables.CONTEXT,
    "Options of `ctx.sample`": tables.SAMPLE_OPTIONS,
    "Methods of servers": tables.SERVER_METHODS,
    "Options of clients": tables.CLIENT_OPTIONS,
    "Methods of clients": tables.CLIENT_METHODS,
    "Options of `call_tool`": tables.CALL_OPTIONS,
}
_PLACES = {"run.": "`{}` of `run()` and `http_app()`", "info.": "`{}` of `info=ServerInfo(...)`"}


def rendered(others: Collection[str]) -> str:
    """The tables in Markdown, without rows of other SDKs, and without names that stay."""
    lines: list[str] = []
    for title, rows in TABLES.items():
        shown = [
            f"| `{old}` | {_new(change.new)} | {change.mark.replace('|', chr(92) + '|')} |"
            for old, change in rows.items()
            if old not in others and (change.mark or change.new != old)
        ]
        if not shown:
            continue
        lines += [f"### {title}", "", "| there | here | remark |", "|---|---|---|", *shown, ""]
    fields = [f"| `{old}` | `{new}` |" for old, new in tables.FIELDS.items()]
    lines += ["### Fields of protocol types", "", "| there | here |", "|---|---|", *fields]
    return "".join(f"{line}\n" for line in lines)


def _new(name: str) -> str:
    for begin, words in _PLACES.items():
        if name.startswith(begin):
            return words.format(name.removeprefix(begin))
    if name == "lenient.not":
        return "`lenient`, with the opposite value"
    return f"`{name}`" if name else ""


def page_with(page: Path, text: str) -> str:
    """A page with other tables."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_are_those_of_the_migrator(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == page_with(page, rendered(PAGES[page]))


def test_every_name_of_one_sdk_is_in_a_table() -> None:
    known = {name for rows in TABLES.values() for name in rows}
    assert known >= tables.ONLY_OFFICIAL | tables.ONLY_FASTMCP


def test_every_replacement_exists() -> None:
    """No row names something that Interlock does not have."""
    for old, change in tables.NAMES.items():
        module, _, name = change.new.rpartition(".")
        if module:
            assert hasattr({"interlock": interlock, "interlock.types": types}[module], name), old
    for rows, owner in (
        (tables.CONTEXT, interlock.Context),
        (tables.CLIENT_METHODS, interlock.Client),
    ):
        for old, change in rows.items():
            if change.new:
                assert hasattr(owner, change.new.partition(".")[0]), old


if __name__ == "__main__":
    for place, left_out in PAGES.items():
        place.write_text(page_with(place, rendered(left_out)), encoding="utf-8")
