"""Names that look like others: found in a list whatever letters they are made of, and no ordinary
name is suspected."""

from __future__ import annotations

import pytest

from interlock.untrusted.lookalikes import lookalikes

ADD_CYRILLIC = "\u0430dd"  # CYRILLIC SMALL LETTER A

CASES: list[tuple[list[str], dict[str, str]]] = [
    (["add", "add_all", "Add", "read1", "readl", "v0", "vo"], {}),
    (["größe", "größer", "naïve"], {}),
    (["добавить", "удалить"], {}),
    (["追加", "データ_list", "検索"], {}),
    (["add", "add\u200b"], {"add\u200b": "This name looks like add, but differs from it."}),
    (["add\u200b", "add"], {"add\u200b": "This name looks like add, but differs from it."}),
    (["add", ADD_CYRILLIC], {ADD_CYRILLIC: "This name looks like add, but differs from it."}),
    (
        [ADD_CYRILLIC],
        {ADD_CYRILLIC: "This name mixes letters that look alike: Cyrillic and Latin."},
    ),
    (["do\u00adit"], {"do\u00adit": "This name contains invisible characters."}),
    (
        ["\u0441\u0430\u0440"],
        {"\u0441\u0430\u0440": "This name reads like cap, but differs from it."},
    ),
    (["add", "\U000e0061dd"], {}),
]


@pytest.mark.parametrize("names, expected", CASES, ids=[repr(names) for names, _ in CASES])
def test_lookalikes(names: list[str], expected: dict[str, str]) -> None:
    """What is said of each name of a list."""
    if "\U000e0061dd" in names:  # a tag character instead of the a: nobody sees it, and dd is left
        expected = {"\U000e0061dd": "This name contains invisible characters."}
    assert lookalikes(names) == expected
