"""Links between the pages are valid."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tests.docs.pages import TOP, anchors, links, pages

PAGES = {page.relative_to(TOP).as_posix(): page for page in pages()}


@pytest.mark.parametrize("name", PAGES)
def test_links_resolve(name: str) -> None:
    """The linked file exists, and so does the linked heading."""
    text = PAGES[name].read_text(encoding="utf-8")
    for link in links(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (PAGES[name].parent / path).resolve() if path else PAGES[name]
        assert target.exists(), f"{name}: {link}"
        assert target.is_relative_to(TOP), f"{name}: {link} leaves the repository"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{name}: {link}"


def test_every_page_of_the_guide_can_be_found() -> None:
    """The table of contents lists every page."""
    guide = TOP / "docs" / "guide"
    listed = {
        unquote(link).partition("#")[0]
        for link in links((guide / "index.md").read_text(encoding="utf-8"))
    }
    assert {page.name for page in guide.glob("*.md")} - {"index.md"} <= listed


def test_links_are_told_from_code() -> None:
    """Code that looks like a link is not a link; headings have the anchors that hosting sites
    generate."""
    text = "# A `b`: c!\n\n[x](y.md#z) `[a](b)` ![p](p.png)\n\n```python\n# [c](d)\n```\n"
    assert links(text) == ["y.md#z"]
    assert anchors(text) == {"a-b-c"}
