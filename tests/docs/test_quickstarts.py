"""The quickstarts are those that the table of products makes, one for each host."""

from __future__ import annotations

import pytest

from interlock.configs import PRODUCTS
from scripts.site import quickstarts


@pytest.mark.parametrize("key", PRODUCTS)
def test_a_quickstart_is_as_generated(key: str) -> None:
    """`python -m scripts.site.quickstarts` writes them."""
    assert (quickstarts.FOLDER / f"{key}.md").read_text(encoding="utf-8") == quickstarts.page(key)


def test_there_is_one_for_each_host() -> None:
    """And none of a host that is gone."""
    assert {page.stem for page in quickstarts.FOLDER.glob("*.md")} == PRODUCTS.keys()
    assert quickstarts.USAGE.keys() == PRODUCTS.keys()


def test_the_table_of_logs_is_that_of_the_doctor() -> None:
    text = quickstarts.DEBUGGING.read_text(encoding="utf-8")
    assert text == quickstarts.with_logs(text)
    assert quickstarts.logs() in text
