"""The journal of a call's answers: the same questions get the same keys in every run, and no two
share one.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.protocol.journal import Journal


def question(message: str, **schema: Any) -> t.ElicitRequest:
    return t.ElicitRequest(
        t.ElicitRequestParams(
            message=message, requested_schema={"type": "object", "properties": schema}
        )
    )


ROOTS = t.ListRootsRequest()


@given(
    st.lists(
        st.tuples(st.text(max_size=3), st.none() | st.text(min_size=1, max_size=3)), max_size=8
    )
)
def test_every_run_gives_the_same_keys_and_each_only_once(
    asked: list[tuple[str, str | None]],
) -> None:
    """Also where the same words are asked again, and whatever names the author gives (`MRT-04`)."""

    def run() -> list[str]:
        journal = Journal()
        keys = []
        named = set()
        for words, name in asked:
            if name in named:
                with pytest.raises(ValueError, match="twice"):
                    journal.key(question(words), name)
                continue
            named |= {name} - {None}
            keys.append(journal.key(question(words), name))
        return keys

    keys = run()
    assert keys == run()
    assert len(set(keys)) == len(keys)


def test_a_key_is_the_questions_place_and_words() -> None:
    """Other words, another form or another place is another question: an answer to one is never
    taken for the other's.
    """
    firsts = {
        Journal().key(q)
        for q in (question("a"), question("b"), question("a", x={"type": "string"}), ROOTS)
    }
    assert len(firsts) == 4
    journal = Journal()
    assert len({journal.key(question("a")) for _ in range(5)}) == 5


def test_the_order_of_keys_in_a_form_makes_no_difference() -> None:
    """A dict that was built in another order is the same form."""
    assert Journal().key(question("a", x={"type": "string", "title": "X"})) == Journal().key(
        question("a", x={"title": "X", "type": "string"})
    )


def test_a_name_is_used_once() -> None:
    """For questions, and for what must happen once; the words say which name it was."""
    journal = Journal()
    assert journal.key(ROOTS, "roots") == "roots"
    with pytest.raises(ValueError, match="'roots'"):
        journal.key(ROOTS, "roots")
    assert journal.once_key("charge") == journal.once_key("refund").replace("refund", "charge")
    with pytest.raises(ValueError, match="charge"):
        journal.once_key("charge")


def test_a_question_and_a_deed_of_the_same_name_do_not_meet() -> None:
    """An answer from outside must never pass for the result of what was done once."""
    journal = Journal()
    assert journal.once_key("charge") != journal.key(ROOTS, "charge")
    with pytest.raises(ValueError, match="twice"):
        journal.key(ROOTS, "once charge")


def test_a_journal_keeps_its_own_entries() -> None:
    """What it was made from is not changed by it."""
    before = {"roots": {"roots": []}}
    journal = Journal(before)
    journal.entries["more"] = 1
    assert before == {"roots": {"roots": []}}
    assert journal.entries == {"roots": {"roots": []}, "more": 1}
