"""Forms: fields out of any revision's schema, answers as typed and as sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from interlock.typed.form_fields import (
    MAX_FIELDS,
    BadForm,
    BadValue,
    FormField,
    check,
    defaults,
    form_fields,
    misfit,
    read_value,
    remark,
)


def schema(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def one(**node: Any) -> FormField:
    [field] = form_fields(schema(x=node))
    return field


KINDS: list[tuple[dict[str, Any], str, tuple[tuple[str, str], ...]]] = [
    ({"type": "string"}, "text", ()),
    ({"type": "number"}, "number", ()),
    ({"type": "integer"}, "integer", ()),
    ({"type": "boolean"}, "boolean", ()),
    ({"type": "string", "enum": ["a", "b"]}, "choice", (("a", "a"), ("b", "b"))),
    (
        {"type": "string", "enum": ["a", "b"], "enumNames": ["A!", "B!"]},
        "choice",
        (("a", "A!"), ("b", "B!")),
    ),
    (
        {"type": "string", "enum": ["a", "b"], "enumNames": ["A!"]},
        "choice",
        (("a", "a"), ("b", "b")),
    ),
    (
        {"type": "string", "oneOf": [{"const": "a", "title": "A!"}, {"const": "b"}]},
        "choice",
        (("a", "A!"), ("b", "b")),
    ),
    (
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "choices",
        (("a", "a"), ("b", "b")),
    ),
    (
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A!"}]}},
        "choices",
        (("a", "A!"),),
    ),
]


@pytest.mark.parametrize("node, kind, options", KINDS)
def test_the_kinds_of_fields(
    node: dict[str, Any], kind: str, options: tuple[tuple[str, str], ...]
) -> None:
    """ELI-06, ELI-09, ELI-10: every primitive, and the five spellings of a choice."""
    field = one(**node)
    assert (field.kind, field.options, field.title, field.default) == (kind, options, "x", UNSET)


def test_all_that_a_field_says() -> None:
    """ELI-06, ELI-08: the order of the form, titles, descriptions, bounds, formats,
    and what is required."""
    form = form_fields(
        schema(
            ["mail"],
            mail={
                "type": "string",
                "title": "E-mail",
                "description": "Yours.",
                "format": "email",
                "minLength": 3,
                "maxLength": 50,
            },
            age={"type": "integer", "minimum": 18, "maximum": 99},
            code={"type": "string", "pattern": "^[a-z]+$", "format": "unheard-of"},
            days={
                "type": "array",
                "items": {"type": "string", "enum": ["Mo", "Tu", "We"]},
                "minItems": 1,
                "maxItems": 2,
            },
        )
    )
    assert [field.name for field in form] == ["mail", "age", "code", "days"]
    mail, age, code, days = form
    assert (mail.title, mail.description, mail.format, mail.required, mail.least, mail.most) == (
        "E-mail",
        "Yours.",
        "email",
        True,
        3,
        50,
    )
    assert (age.least, age.most, age.required) == (18, 99, False)
    assert (code.pattern, code.format) == ("^[a-z]+$", "")
    assert (days.least, days.most) == (1, 2)
    assert remark(mail) == "Yours.; an e-mail address; from 3 to 50 characters"
    assert remark(age) == "a whole number; from 18 to 99; may be left empty"
    assert (
        remark(days)
        == "several values, separated by commas: Mo, Tu, We; from 1 to 2 of them; may be left empty"
    )


def test_defaults() -> None:
    """ELI-11, ELI-12: every kind may have a default; one that does not fit is none."""
    form = form_fields(
        schema(
            text={"type": "string", "default": "x"},
            number={"type": "number", "default": 1.5},
            no={"type": "boolean", "default": False},
            choice={"type": "string", "enum": ["a"], "default": "a"},
            days={"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]},
            bad={"type": "integer", "default": "5"},
            alien={"type": "string", "enum": ["a"], "default": "z"},
            strangers={"type": "array", "items": {"enum": ["a"]}, "default": ["z"]},
            yes={"type": "integer", "default": True},
            long={"type": "string", "maxLength": 1, "default": "xx"},
            none={"type": "string", "default": None},
        )
    )
    assert defaults(form) == {"text": "x", "number": 1.5, "no": False, "choice": "a", "days": ["b"]}


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "array"}, {"type": "object", "properties": []}, schema(x=5), schema(x={}),
            schema(x={"type": "object"}),
        schema(x={"type": "array", "items": {"type": "string"}}), schema(x={"type": "array"}),
        schema(x={"type": ["string", "null"]}),
        schema(x={"type": "string", "enum": []}), schema(x={"type": "string", "enum": [1]}),
        schema(x={"oneOf": [{"title": "a"}]}),
        schema(x={"type": "string", "oneOf": "a"}), schema(x={"anyOf": [5]}),
        schema(x={"type": "string", "pattern": "("}), schema(x={"type": "string",
            "minLength": "3"}), schema(x={"$ref": "https://example.com/x"}),
        schema(["y"], x={"type": "string"}),
        schema(**{f"x{n}": {"type": "string"} for n in range(MAX_FIELDS + 1)}),
        schema(x={"type": "string", "enum": [str(n) for n in range(1001)]}),
    ],
)  # fmt: skip
def test_what_is_no_form(bad: dict[str, Any]) -> None:
    """ELI-06: a schema that is not flat, or that nobody could fill in, is refused with words."""
    with pytest.raises(BadForm):
        form_fields(bad)
    with pytest.raises(BadForm):
        check(bad, {})


MISFITS: list[tuple[dict[str, Any], Any, str]] = [
    (
        {"type": "string", "format": "email"},
        "kim",
        "This must be an e-mail address, such as name@example.com.",
    ),
    (
        {"type": "string", "format": "date"},
        "2026-02-30",
        "This must be a date, such as 2026-12-31.",
    ),
    (
        {"type": "string", "format": "date-time"},
        "2026-02-28 10:00",
        "This must be a date with time and zone, such as 2026-12-31T18:30:00Z.",
    ),
    (
        {"type": "string", "format": "uri"},
        "example",
        "This must be an address of the web, such as https://example.com/.",
    ),
    ({"type": "string", "minLength": 3}, "ab", "This must have at least 3 characters."),
    ({"type": "string", "maxLength": 3}, "abcd", "This must have at most 3 characters."),
    ({"type": "string", "pattern": "^[a-z]+$"}, "A", "This must match the pattern ^[a-z]+$"),
    ({"type": "string"}, 5, "This must be a text."),
    ({"type": "string"}, None, "This must be a text."),
    ({"type": "integer"}, 1.5, "This must be a whole number."),
    ({"type": "integer"}, True, "This must be a whole number."),
    ({"type": "number"}, "5", "This must be a number."),
    ({"type": "number"}, float("inf"), "This must be a number."),
    ({"type": "number", "minimum": 1, "maximum": 1000000}, 0, "This must be from 1 to 1000000."),
    (
        {"type": "number", "exclusiveMinimum": 1},
        1,
        "This does not fit: 1 is less than or equal to the minimum of 1.",
    ),
    ({"type": "boolean"}, "yes", "This must be yes or no."),
    (
        {"type": "string", "enum": ["a", "b"], "enumNames": ["A!", "b"]},
        "c",
        "'c' is not one of the choices: a (A!), b.",
    ),
    (
        {"type": "array", "items": {"enum": ["a", "b"]}},
        ["a", "c"],
        "'c' is not one of the choices: a, b.",
    ),
    (
        {"type": "array", "items": {"enum": ["a", "b"]}},
        "a",
        "This must be some of the choices: a, b.",
    ),
    (
        {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
        [],
        "This must have at least 1 of them.",
    ),
]


@pytest.mark.parametrize("node, value, words", MISFITS)
def test_what_does_not_fit_says_what_would(node: dict[str, Any], value: Any, words: str) -> None:
    """ELI-08, ELI-34: answers are checked before they are sent, in words for the person."""
    assert misfit(one(**node), value) == words
    assert check(schema(x=node), {"x": value}) == {"x": words}


def test_a_whole_answer() -> None:
    """ELI-13, ELI-34: what is required, what is no field, and an answer that fits."""
    form = schema(["name"], name={"type": "string"}, age={"type": "integer"})
    assert check(form, {"name": "Kim"}) == {}
    assert check(form, {"name": "Kim", "age": 5}) == {}
    assert check(form, {"age": "5", "more": 1}) == {
        "name": "This field is required.",
        "age": "This must be a whole number.",
        "more": "The form has no such field.",
    }
    assert check({"type": "object", "properties": {}}, {}) == {}


TITLED = {
    "type": "string",
    "oneOf": [
        {"const": "nyc", "title": "New York"},
        {"const": "bcn", "title": "Barcelona"},
        {"const": "a,b", "title": "Both"},
    ],
}
SEVERAL = {"type": "array", "items": {"anyOf": TITLED["oneOf"]}}
READINGS: list[tuple[dict[str, Any], str, Any]] = [
    ({"type": "string"}, " as it stands ", " as it stands "),
    ({"type": "integer"}, " 5 ", 5),
    ({"type": "integer"}, "5.0", 5),
    ({"type": "integer"}, "123456789012345678901", 123456789012345678901),
    ({"type": "number"}, "1e3", 1000.0),
    ({"type": "number"}, "-2", -2),
    ({"type": "boolean"}, "Yes", True),
    ({"type": "boolean"}, "n", False),
    (TITLED, "bcn", "bcn"),
    (TITLED, "barcelona", "bcn"),
    (TITLED, "BCN", "bcn"),
    (TITLED, "1", "nyc"),
    (TITLED, "a,b", "a,b"),
    ({"type": "string", "enum": ["2", "1"]}, "1", "1"),
    (SEVERAL, "nyc, Barcelona", ["nyc", "bcn"]),
    (SEVERAL, "nyc,nyc", ["nyc"]),
    (SEVERAL, "a,b", ["a,b"]),
    (SEVERAL, '["a,b", "nyc"]', ["a,b", "nyc"]),
    (SEVERAL, "", []),
]


@pytest.mark.parametrize("node, text, value", READINGS)
def test_what_is_typed_is_read(node: dict[str, Any], text: str, value: Any) -> None:
    """ELI-08, ELI-10: values as people type them; choices by value, title or place."""
    found = read_value(one(**node), text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "node, text",
    [
        ({"type": "integer"}, "5.5"), ({"type": "integer"}, ""), ({"type": "number"}, "nan"),
            ({"type": "number"}, "1e999"), ({"type": "boolean"}, "maybe"),
        (TITLED, "rome"), (TITLED, "0"), (TITLED, "4"), (TITLED, ""), (SEVERAL, "nyc, rome"),
            (SEVERAL, "[1]x"),
        ({"type": "string", "format": "email"}, "kim"), ({"type": "string", "minLength": 1}, ""),
            ({"type": "integer", "maximum": 3}, "4"),
        ({"type": "string", "enum": ["a", "A"], "enumNames": ["x", "X"]}, "X!"),
            ({"type": "string", "enum": ["a", "b"], "enumNames": ["x", "x"]}, "x"),
    ],
)  # fmt: skip
def test_what_is_typed_and_is_no_value(node: dict[str, Any], text: str) -> None:
    """ELI-34: nothing is guessed: what is not clear is asked again, with words."""
    with pytest.raises(BadValue) as refused:
        read_value(one(**node), text)
    assert str(refused.value).endswith(".")


@given(st.sampled_from([node for node, _, _ in KINDS]), st.text(max_size=12))
def test_whatever_is_typed_is_read_or_refused(node: dict[str, Any], text: str) -> None:
    """ELI-34: what is read fits the form, always."""
    field = one(**node)
    try:
        value = read_value(field, text)
    except BadValue:
        return
    assert check(schema(x=node), {"x": value}) == {}


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=8)
        | st.sampled_from(["string", "array", "object", "integer"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "properties",
                        "required",
                        "enum",
                        "enumNames",
                        "oneOf",
                        "items",
                        "const",
                        "default",
                        "title",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=15,
    )
)
def test_any_schema_is_a_form_or_is_refused(value: Any) -> None:
    """ELI-06: no schema of a server makes the host stumble."""
    for requested in (value, {"type": "object", "properties": {"x": value}}, {"properties": value}):
        if isinstance(requested, dict):
            try:
                form = form_fields(requested)
            except BadForm:
                continue
            assert all(
                misfit(field, field.default) == "" for field in form if field.default is not UNSET
            )
