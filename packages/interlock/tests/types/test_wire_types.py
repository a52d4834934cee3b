"""The ground that every protocol type stands on: immutable, camelCase, absent stays absent, and
each can be told from the others.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from interlock import types as t
from tests.history.samples import full

WIRE = sorted(
    (
        kind
        for kind in vars(t).values()
        if inspect.isclass(kind) and issubclass(kind, Struct) and kind.__name__ in t.__all__
    ),
    key=lambda kind: kind.__name__,
)
every_type = pytest.mark.parametrize("kind", WIRE, ids=lambda kind: kind.__name__)


def test_the_list_above_is_not_empty() -> None:
    """It is what the tests below run over."""
    assert len(WIRE) > 90


@every_type
def test_a_type_cannot_be_changed_after_it_was_made(kind: type[Any]) -> None:
    """One value may go to many callers at once."""
    value = full(kind, "2026-07-28")
    for field in msgspec.structs.fields(kind):
        with pytest.raises(AttributeError):
            setattr(value, field.name, None)


@every_type
def test_names_on_the_wire_are_the_specifications(kind: type[Any]) -> None:
    """camelCase, or a key of `_meta` as it is; never a Python name."""
    for field in msgspec.structs.fields(kind):
        assert re.fullmatch(
            r"[a-z][a-zA-Z0-9]*|_meta|io\.modelcontextprotocol/[a-zA-Z]+", field.encode_name
        ), field.encode_name


@every_type
def test_what_was_not_given_is_not_written(kind: type[Any]) -> None:
    """No null and no empty object stands for a field that nobody set."""
    required = [field for field in msgspec.structs.fields(kind) if field.required]
    sample = full(kind, "2026-07-28")
    value = kind(**{field.name: getattr(sample, field.name) for field in required})
    written = json.loads(msgspec.json.encode(value))
    tag = {kind.__struct_config__.tag_field} if kind.__struct_config__.tag_field else set()
    assert written.keys() == {field.encode_name for field in required} | tag


@every_type
def test_a_type_says_what_it_is(kind: type[Any]) -> None:
    """Each has words of its own."""
    assert kind.__doc__
    assert kind.__doc__ != (kind.__mro__[1].__doc__ or "")


def test_content_blocks_are_told_apart_by_their_type() -> None:
    """Seven kinds on the wire, and no other."""
    blocks = {
        kind.__struct_config__.tag: kind
        for kind in WIRE
        if kind.__struct_config__.tag_field == "type"
    }
    assert {str(tag) for tag in blocks if not str(tag).startswith("ref/")} == {
        *t.ContentType.__args__,
        "interlock/unknown",
    }


def test_every_question_has_its_answer() -> None:
    """(`MRT-03`)"""
    assert set(t.RESPONSE_TYPES) == set(t.InputRequest.__args__)
    assert set(t.RESPONSE_TYPES.values()) == set(t.InputResponse.__args__)
    assert [kind.__struct_config__.tag for kind in t.RESPONSE_TYPES] == [
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
    ]
