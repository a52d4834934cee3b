"""Paths of a user's own: what they have named comes first, and who has no home is told which
variable to set.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Never

import pytest

from interlock.store import StoreError, own_path


def test_what_is_named_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable, with `~` for a home; else the folder for data of this platform.

    Nothing is made.
    """
    monkeypatch.setenv("MY_NOTES", str(tmp_path / "notes.db"))
    assert own_path("MY_NOTES", "notes", "notes.db") == tmp_path / "notes.db"
    monkeypatch.setenv("MY_NOTES", "~/notes.db")
    assert own_path("MY_NOTES", "notes", "notes.db") == Path.home() / "notes.db"
    monkeypatch.setenv("MY_NOTES", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert (
        own_path("MY_NOTES", "notes", "notes.db") == tmp_path / "interlock" / "notes" / "notes.db"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", ["", "~/notes.db"])
def test_who_has_no_home_is_told(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """In words that say what to do."""

    def nowhere() -> Never:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("MY_NOTES", named)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.setattr(Path, "expanduser", lambda path: nowhere())
    with pytest.raises(StoreError, match="Name a place in MY_NOTES"):
        own_path("MY_NOTES", "notes.db")
