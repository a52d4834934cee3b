"""Docstrings taken apart: the three forms as people write them, and whatever else may stand in a
docstring.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.typed.docstrings import Docstring, parse

GOOGLE = """Book a seat.

    The train must: not have left.

    Args:
        day (str, optional): The day of travel,
            in ISO 8601: 2026-07-28.
        seats (dict[str, (int)]): How many, by class.
            - first
            - second
        *names: Who travels.
        **more: Anything else.

    Returns:
        dict[str, int]: The numbers of the seats.

    Raises:
        ValueError: The train is full.

    Example:
        >>> book("2026-07-28")
    """

NUMPY = """Book a seat.

    The train must: not have left.

    Parameters
    ----------
    day : str, optional
        The day of travel,

        in ISO 8601: 2026-07-28.
    x, y : float
        Where it is.
    **more
        Anything else.

    Returns
    -------
    int
        The number of the seat.

    Notes
    -----
    Seats are scarce.
    """

SPHINX = """Book a seat.

    The train must: not have left.

    :param day: The day of travel,
        in ISO 8601: 2026-07-28.
    :param int seats: How many.
    :type day: str
    :returns: The numbers of the seats.
    :rtype: list[int]
    :raises ValueError: The train is full.
    """


def test_the_google_form() -> None:
    """Parameters with types, lists and lines that go on; the sections that are not on parameters
    stay in the text.
    """
    found = parse(GOOGLE)
    assert found.params == {
        "day": "The day of travel, in ISO 8601: 2026-07-28.",
        "seats": "How many, by class.\n- first\n- second",
        "names": "Who travels.",
        "more": "Anything else.",
    }
    assert found.returns == "The numbers of the seats."
    assert found.summary_and_text == (
        "Book a seat.\n\nThe train must: not have left.\n\n"
        'Raises:\n    ValueError: The train is full.\n\nExample:\n    >>> book("2026-07-28")'
    )


def test_the_numpy_form() -> None:
    """Parameters one by one and several at once; a section ends at the next header."""
    found = parse(NUMPY)
    assert found.params == {
        "day": "The day of travel, in ISO 8601: 2026-07-28.",
        "x": "Where it is.",
        "y": "Where it is.",
        "more": "Anything else.",
    }
    assert found.returns == "The number of the seat."
    assert (
        found.summary_and_text
        == "Book a seat.\n\nThe train must: not have left.\n\nNotes\n-----\nSeats are scarce."
    )


def test_the_sphinx_form() -> None:
    """Fields with and without types; types by themselves are dropped, other fields stay in the
    text.
    """
    found = parse(SPHINX)
    assert found.params == {
        "day": "The day of travel, in ISO 8601: 2026-07-28.",
        "seats": "How many.",
    }
    assert found.returns == "The numbers of the seats."
    assert (
        found.summary_and_text
        == "Book a seat.\n\nThe train must: not have left.\n\n:raises ValueError: The train is"
        " full."
    )


@pytest.mark.parametrize(
    "doc, expected",
    [
        (None, Docstring()),
        ("", Docstring()),
        ("  \n ", Docstring()),
        (3, Docstring()),
        ("One line.", Docstring("One line.")),
        (
            "One.\n\nArgs:\n\n    a: After an empty line.",
            Docstring("One.", {"a": "After an empty line."}),
        ),
        (
            "One.\n\nArgs:\n    a: First.\nText again.",
            Docstring("One.\n\nText again.", {"a": "First."}),
        ),
        ("One.\n\nArgs:\nnothing indented", Docstring("One.\n\nArgs:\nnothing indented")),
        (
            "One.\n\nParameters\n-----\na: int\n    First.\n\nProse at last.",
            Docstring("One.\n\nProse at last.", {"a": "First."}),
        ),
        (
            "One.\n\nReturns:\n    Note well: a number.",
            Docstring("One.", {}, "Note well: a number."),
        ),
        ("One.\n\nReturns:\n    int | None: A number.", Docstring("One.", {}, "A number.")),
        (
            "One.\n\nReturns\n-------\nA number, in prose.",
            Docstring("One.", {}, "A number, in prose."),
        ),
        (
            "One.\n\nYields:\n    Progress, then a number.",
            Docstring("One.", {}, "Progress, then a number."),
        ),
        ("At 10:30: nothing.\n:param: no name", Docstring("At 10:30: nothing.\n:param: no name")),
        ("Größe.\n\nArgs:\n    größe: In cm.", Docstring("Größe.", {"größe": "In cm."})),
    ],
)
def test_what_people_write_too(doc: str | None, expected: Docstring) -> None:
    """Sections that are empty, misplaced or in prose cost nothing but themselves."""
    assert parse(doc) == expected


PIECES = st.sampled_from(
    [
        *("Args:", "Parameters", "----------", "Returns:", "Returns", "    a: b", "        deeper"),
        *("a : int", ":param x: y", ":returns:", "", "   ", "text", "\t", ":"),
    ]
)


@given(st.text() | st.lists(PIECES | st.text(max_size=20)).map("\n".join))
def test_anything_is_read(doc: str) -> None:
    """Nothing is raised, and what comes out is text with names for its parts."""
    found = parse(doc)
    assert found.summary_and_text == found.summary_and_text.strip()
    assert all(name and words for name, words in found.params.items())
    assert found.returns != ""


def test_a_long_line_is_read_in_no_time() -> None:
    """No form makes the reader go back and forth over a line: this ends, which is all that is
    asked.
    """
    for line in (
        "Args:\n    a (" + ")" * 20_000,
        "Returns:\n    x[" + "," * 20_000,
        "a, " * 20_000 + "\n-----",
        ":param " + "x " * 20_000,
    ):
        assert parse("One.\n\n" + line).summary_and_text.startswith("One.")
