"""The repository names no package registry and no machine, and the checker finds each violation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import words

BREACHES = {
    "a registry": "see https://" + words.HOSTS[0] + "/simple",
    "another registry": "index = " + words.HOSTS[2] + ".org",
    "a path of the machine": 'cd "/wo' + 'rk/main"',
    "a home": "/ro" + "ot/.cache",
    "a path in an address": "file:///fa" + "rm/x",
}


def test_nothing_names_a_registry_or_a_machine(top: Path) -> None:
    """No host of a package registry and no path of one machine, in any file of the checkout."""
    assert top / "Makefile" in set(words.files(top))
    assert top / ".ci" / "run" in set(words.files(top))
    found = list(words.problems(top))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", BREACHES.values(), ids=BREACHES)
def test_each_forbidden_word_is_found(tmp_path: Path, text: str) -> None:
    """It is found in any kind of file, and the error names the line."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("A page.\n" + text + "\n", encoding="utf-8")
    (found,) = words.problems(tmp_path)
    assert found.startswith("docs/page.md:2: names ")


def test_ordinary_words_and_what_tools_built_give_no_alarm(tmp_path: Path) -> None:
    """Paths that only contain the words pass, and so do generated files."""
    (tmp_path / "page.md").write_text(
        "home/work/x, /workshop/, /roots/list, ./work/x, python.org\n", encoding="utf-8"
    )
    for folder in (".venv", "node_modules", "__pycache__", "x.egg-info"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "page.md").write_text(BREACHES["a registry"], encoding="utf-8")
    assert list(words.problems(tmp_path)) == []
