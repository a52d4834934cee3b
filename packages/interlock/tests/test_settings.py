"""Settings from an environment: each type as people write it, and words for what is none."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from interlock import settings_of


class Limits(Struct, frozen=True, kw_only=True):
    page: int = 50
    seconds: float = 60.0
    sync: bool = True
    links: Literal["refuse", "read"] = "refuse"
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    agent: str = "Mine/1.0"
    hosts: tuple[str, ...] = ()


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("page", "7", 7),
        ("page", " 7 ", 7),
        ("page", "", 50),
        ("page", " ", 50),
        ("seconds", "0.5", 0.5),
        ("seconds", "2", 2.0),
        ("sync", "0", False),
        ("sync", "False", False),
        ("sync", "TRUE", True),
        ("links", "Read", "read"),
        ("share", "0", 0.0),
        ("agent", "Yours/2.0 (X)", "Yours/2.0 (X)"),
        ("hosts", "a.example, B.example c.example", ("a.example", "B.example", "c.example")),
    ],
)
def test_what_is_set(name: str, text: str, value: Any) -> None:
    """A field has what its variable says, and all others their defaults."""
    assert settings_of(Limits, "X_", {f"X_{name.upper()}": text, name: "1", "PAGE": "2"}) == Limits(
        **{name: value}
    )


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("PAGE", "0", "X_PAGE=0: it has to be more than 0"),
        ("PAGE", "-3", "X_PAGE=-3: it has to be more than 0"),
        ("PAGE", "many", "X_PAGE=many: Expected `int`, got `str`"),
        ("PAGE", "1.5", "X_PAGE=1.5: Expected `int`"),
        ("SECONDS", "inf", "X_SECONDS=inf: it has to be more than 0"),
        ("SECONDS", "nan", "X_SECONDS=nan: it has to be more than 0"),
        ("SYNC", "perhaps", "X_SYNC=perhaps: Expected `bool`"),
        ("LINKS", "follow", "X_LINKS=follow: Invalid enum value 'follow'"),
        ("SHARE", "2", "X_SHARE=2: Expected `float` <= 1.0"),
    ],
)
def test_what_is_no_setting(name: str, text: str, words: str) -> None:
    """The variable is named, and nothing is taken for something else."""
    with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
        settings_of(Limits, "X_", {f"X_{name}": text})


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_PAGE", "9")
    assert settings_of(Limits, "X_").page == 9


@given(st.text(max_size=30))
def test_any_text_is_a_number_above_zero_or_is_refused(text: str) -> None:
    """Whatever stands there, what comes back can be relied upon."""
    try:
        found = settings_of(Limits, "X_", {"X_PAGE": text, "X_SECONDS": text})
    except ValueError as bad:
        assert "X_PAGE" in str(bad) or "X_SECONDS" in str(bad)
    else:
        assert found.page > 0
        assert 0 < found.seconds < float("inf")
