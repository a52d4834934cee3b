"""JSON Schema by topic, with matching and other arguments: 2020-12 and both older dialects."""

from __future__ import annotations

from typing import Any, NamedTuple

JSON = dict[str, Any]


class SchemaVariant(NamedTuple):
    """An input schema with its name, an example that matches, and some that do not."""

    title: str
    words: str
    schema: JSON
    fits: JSON
    misfits: tuple[JSON, ...]


def _object(properties: JSON, **more: Any) -> JSON:
    return {"type": "object", "properties": properties, **more}


TEXTS = _object(
    {
        "name": {
            "type": "string",
            "title": "Name",
            "description": "A short name.",
            "minLength": 1,
            "maxLength": 20,
            "examples": ["Ada", "Alan"],
        },
        "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}$", "default": "AB12"},
        "kind": {"type": "string", "const": "text"},
        "size": {"enum": ["small", "large", 7, True, None], "$comment": "An enum may mix types."},
        "secret": {"type": "string", "writeOnly": True, "deprecated": True},
        "data": {
            "type": "string",
            "contentEncoding": "base64",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "array"},
        },
    },
    required=["name"],
)
FORMATS = _object(
    {
        name.replace("-", "_"): {"type": "string", "format": name}
        for name in (
            "email",
            "uri",
            "uri-reference",
            "uri-template",
            "date",
            "time",
            "date-time",
            "duration",
            "uuid",
            "hostname",
            "ipv4",
            "ipv6",
            "json-pointer",
            "regex",
        )
    }
)
NUMBERS = _object(
    {
        "count": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "even": {"type": "integer", "multipleOf": 2},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "sure": {"type": "boolean", "default": False},
        "nothing": {"type": "null"},
    }
)
ARRAYS = _object(
    {
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 3,
            "uniqueItems": True,
        },
        "point": {
            "type": "array",
            "prefixItems": [{"type": "number"}, {"type": "number"}],
            "items": False,
        },
        "row": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        "marks": {
            "type": "array",
            "contains": {"type": "integer", "minimum": 5},
            "minContains": 1,
            "maxContains": 2,
        },
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "list": {
            "type": "array",
            "prefixItems": [{"const": "x"}],
            "unevaluatedItems": {"type": "boolean"},
        },
    }
)
OBJECTS = _object(
    {
        "place": _object(
            {"city": {"type": "string"}, "zip": {"type": "string"}},
            required=["city"],
            additionalProperties=False,
        ),
        "scores": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "maxProperties": 3,
        },
        "headers": {
            "type": "object",
            "patternProperties": {"^X-": {"type": "string"}},
            "additionalProperties": False,
        },
        "words": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
        "card": _object(
            {"number": {"type": "string"}, "expires": {"type": "string"}},
            dependentRequired={"number": ["expires"]},
        ),
        "parcel": _object(
            {"express": {"type": "boolean"}},
            dependentSchemas={
                "express": {"properties": {"phone": {"type": "string"}}, "required": ["phone"]}
            },
        ),
        "whole": {
            "allOf": [_object({"a": {"type": "integer"}})],
            "type": "object",
            "unevaluatedProperties": False,
        },
    }
)
CHOICES = _object(
    {
        "contact": {
            "oneOf": [
                _object(
                    {"email": {"type": "string"}}, required=["email"], additionalProperties=False
                ),
                _object(
                    {"phone": {"type": "string"}}, required=["phone"], additionalProperties=False
                ),
            ]
        },
        "amount": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+$"}]},
        "range": {"allOf": [{"type": "integer"}, {"minimum": 1}, {"maximum": 9}]},
        "colour": {"type": "string", "not": {"enum": ["red"]}},
    }
)
CONDITIONS = _object(
    {
        "method": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    required=["method"],
    **{
        "if": {"properties": {"method": {"const": "phone"}}},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
    },
)
REFERENCES = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.com/everything/references",
    **_object(
        {
            "from": {"$ref": "#/$defs/place"},
            "to": {"$ref": "#place"},
            "tree": {"$ref": "#/$defs/tree"},
            "open": {"$ref": "#/$defs/open"},
        },
        required=["from"],
    ),
    "$defs": {
        "place": {"$anchor": "place", **_object({"city": {"type": "string"}}, required=["city"])},
        "tree": _object(
            {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            required=["name"],
        ),
        "open": {"$dynamicAnchor": "open", **_object({"inner": {"$dynamicRef": "#open"}})},
    },
}
NULLABLE = _object(
    {
        "by_type": {"type": ["string", "null"]},
        "by_choice": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "by_enum": {"enum": ["yes", "no", None]},
    },
    required=["by_type"],
)

VARIANTS: dict[str, SchemaVariant] = {
    "take_texts": SchemaVariant(
        "Strings",
        "Take strings: by length, pattern, constant, choice, encoding, with titles, defaults and "
        "examples.",
        TEXTS,
        {"name": "Ada", "code": "CD34", "kind": "text", "size": 7},
        (
            {"name": ""},
            {},
            {"name": "Ada", "code": "cd34"},
            {"name": "Ada", "kind": "number"},
            {"name": "Ada", "size": "huge"},
        ),
    ),
    "take_formats": SchemaVariant(
        "Formats",
        "Take strings of each format; a format says what is meant, and is not what a call fails "
        "for.",
        FORMATS,
        {
            "email": "ada@example.com",
            "uri": "https://example.com",
            "date": "2026-07-28",
            "date_time": "2026-07-28T09:00:00Z",
        },
        ({"email": 7},),
    ),
    "take_numbers": SchemaVariant(
        "Numbers",
        "Take whole and other numbers within bounds, true and false, and null.",
        NUMBERS,
        {"count": 3, "even": 4, "share": 0.5, "sure": True, "nothing": None},
        ({"count": 11}, {"even": 3}, {"share": 1}, {"sure": "yes"}, {"nothing": 0}, {"count": 1.5}),
    ),
    "take_arrays": SchemaVariant(
        "Arrays",
        "Take arrays: of one kind, of a kind for each place, that hold something, that are "
        "unique, of arrays.",
        ARRAYS,
        {
            "tags": ["a", "b"],
            "point": [1, 2],
            "row": ["a", 1, 2],
            "marks": [5, 1],
            "grid": [[1]],
            "list": ["x", True],
        },
        (
            {"tags": ["a", "a"]},
            {"tags": []},
            {"point": [1, 2, 3]},
            {"row": ["a", "b"]},
            {"marks": [1]},
            {"list": ["x", 1]},
        ),
    ),
    "take_objects": SchemaVariant(
        "Objects",
        "Take objects: closed ones, mappings, names by a pattern, members that depend on others.",
        OBJECTS,
        {
            "place": {"city": "Lyon"},
            "scores": {"a": 1},
            "headers": {"X-A": "b"},
            "words": {"abc": 1},
            "card": {},
            "whole": {"a": 1},
        },
        (
            {"place": {"city": "Lyon", "planet": "Earth"}},
            {"scores": {"a": "b"}},
            {"scores": {}},
            {"headers": {"A": "b"}},
            {"words": {"ABC": 1}},
            {"card": {"number": "1"}},
            {"parcel": {"express": True}},
            {"whole": {"a": 1, "b": 2}},
        ),
    ),
    "take_choices": SchemaVariant(
        "Choices of schemas",
        "Take what fits one schema of several, any of them, all of them, or not a certain one.",
        CHOICES,
        {"contact": {"phone": "1"}, "amount": "12", "range": 5, "colour": "green"},
        (
            {"contact": {"phone": "1", "email": "a@b"}},
            {"amount": "x"},
            {"range": 10},
            {"colour": "red"},
        ),
    ),
    "take_conditions": SchemaVariant(
        "Conditions",
        "Take a phone number where the method is phone, else an address.",
        CONDITIONS,
        {"method": "phone", "phone": "1"},
        ({"method": "phone", "email": "a@b"}, {"method": "email"}),
    ),
    "take_references": SchemaVariant(
        "References",
        "Take what definitions describe, by reference, by anchor, and by references to themselves.",
        REFERENCES,
        {
            "from": {"city": "Lyon"},
            "tree": {"name": "a", "children": [{"name": "b"}]},
            "open": {"inner": {"inner": {}}},
        },
        (
            {"from": {}},
            {"from": {"city": "Lyon"}, "to": {}},
            {"from": {"city": "Lyon"}, "tree": {"name": "a", "children": [{}]}},
        ),
    ),
    "take_nullable": SchemaVariant(
        "Null",
        "Take null in the place of a value, in each of the ways in which a schema can allow that.",
        NULLABLE,
        {"by_type": None, "by_choice": None, "by_enum": None},
        ({}, {"by_type": 1}, {"by_type": "a", "by_enum": "maybe"}),
    ),
    "take_anything": SchemaVariant(
        "Anything", "Take any object whatever.", {"type": "object"}, {"a": [1, {"b": None}]}, ()
    ),
    "take_nothing": SchemaVariant(
        "Nothing",
        "Take no arguments at all.",
        {"type": "object", "additionalProperties": False},
        {},
        ({"a": 1},),
    ),
}
"""Tool -> its schema of JSON Schema 2020-12, the default dialect."""

DIALECTS: dict[str, SchemaVariant] = {
    "take_draft_07": SchemaVariant(
        "Draft 07",
        "Take what a schema of draft-07 allows, as many tools of older days have it.",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"name": {"type": "string", "minLength": 1}},
            **_object(
                {
                    "name": {"$ref": "#/definitions/name"},
                    "pair": {
                        "type": "array",
                        "items": [{"type": "integer"}],
                        "additionalItems": False,
                    },
                },
                dependencies={"pair": ["name"]},
            ),
        },
        {"name": "Ada", "pair": [1]},
        ({"pair": [1]}, {"name": "Ada", "pair": [1, 2]}, {"name": ""}),
    ),
    "take_draft_2019": SchemaVariant(
        "Draft 2019-09",
        "Take what a schema of draft 2019-09 allows.",
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            **_object({"tree": {"$ref": "#/$defs/tree"}}),
            "$defs": {
                "tree": _object(
                    {
                        "children": {
                            "type": "array",
                            "items": [{"$ref": "#/$defs/tree"}],
                            "additionalItems": False,
                        }
                    }
                )
            },
        },
        {"tree": {"children": [{}]}},
        ({"tree": {"children": [{}, {}]}},),
    ),
}
"""Tool -> its schema in another dialect, which it declares."""
