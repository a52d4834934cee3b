"""Every error message that users meet has what to do about it."""

from __future__ import annotations

import pytest

from scripts.site.messages import CURES, GENERAL, KINDS, Message, cure, messages, page


@pytest.fixture(scope="module")
def found() -> list[Message]:
    """All messages of the sources."""
    return messages()


def test_every_message_has_a_cure(found: list[Message]) -> None:
    """The message says it, or a row of `CURES` in scripts/site/messages.py does: add one."""
    lacking = [f"{one.kind}: {one.text}" for one in found if not one.cure]
    assert not lacking, "\n".join(lacking)


def test_every_row_is_used(found: list[Message]) -> None:
    """A row that matches no message any more can go."""
    used = {one.cure for one in found}
    assert [words for _, words in CURES if words not in used] == []


def test_each_class_is_on_the_page(found: list[Message]) -> None:
    text = page()
    kinds = KINDS.keys() | GENERAL.keys()
    assert {one.kind for one in found} == kinds
    assert all(f"## {kind}\n" in text for kind in kinds)
    assert "| `Unknown tool: …` |" in text
    assert "| `invalid_grant: the grant has ended: the user must log in again` | Log in" in text


def test_a_message_without_a_cure_is_noticed() -> None:
    assert cure("The moon is in the wrong phase.") == ""
    assert cure("Give a number.") == "The message says what to do."
